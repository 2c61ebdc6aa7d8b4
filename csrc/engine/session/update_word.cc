// UpdateWord. Floor: engine/session. Thread: the driver.
#include "csrc/engine/session/update_word.h"

#include <cstring>

#include "csrc/engine/session/session_memory.h"

namespace rdmacoll {

void UpdateWord::let_go(const Way& way) {
  if (landing_) way.landings.give_back(*std::exchange(landing_, std::nullopt));
}

// The end of a peer makes its ticket done (transport.h), and nothing need have come: its session
// fails, with this.
Transfer::State UpdateWord::advance(const Way& way) {
  Transport& transport = *way.link.transport;
  State state = State::Waits;
  if (!is_posted_) {
    if (!landing_) landing_ = way.landings.take();
    if (!landing_) return State::Waits;
    landing_->bytes = kWordBytes;
    if (transport.update(way.link.peer, kSessionChannel, word_, update_, *landing_, &ticket_) ==
        Posted::Full) {
      return State::Waits;
    }
    is_posted_ = true;
    state = State::Moved;
  }
  if (!ticket_.done() || !transport.peer_status(way.link.peer).ok()) return state;
  std::memcpy(before_.get(), landing_->data, kWordBytes);
  is_posted_ = false;
  let_go(way);
  return State::Ended;
}

}  // namespace rdmacoll
