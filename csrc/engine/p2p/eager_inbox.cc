// EagerInbox. Floor: engine/p2p. Thread: the driver.
#include "csrc/engine/p2p/eager_inbox.h"

namespace rdmacoll {

const std::byte* EagerInbox::look(uint64_t number) {
  while (arrived_ <= number) {
    const Line* line = port_.take();
    if (line == nullptr) return nullptr;
    slots_[arrived_++ % kSlotDepth] = {port_.incoming(line->length_and_sequence), false};
  }
  return slots_[number % kSlotDepth].bytes;
}

void EagerInbox::release(uint64_t number) {
  slots_[number % kSlotDepth].released = true;
  for (; returned_ < arrived_ && slots_[returned_ % kSlotDepth].released; ++returned_) {
    port_.consume();
  }
}

}  // namespace rdmacoll
