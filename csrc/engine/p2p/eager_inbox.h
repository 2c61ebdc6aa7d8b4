// EagerInbox: the short messages of one peer whose bytes have come beside their envelopes. Each
// stays in its slot until a receive takes it, in whatever order receives come: nothing is copied
// aside, and a peer that finds no slot free asks for clearance instead (p2p.h). Floor: engine/p2p.
// Thread: the driver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "csrc/base/limits.h"
#include "csrc/engine/channel/port.h"

namespace rdmacoll {

class EagerInbox {
 public:
  explicit EagerInbox(Port& port) : port_(port) {}

  // The number of the next one that an envelope tells of; messages come in the same order.
  uint64_t expect() { return expected_++; }
  // Its bytes; nullptr: they are not here yet, as envelopes may be quicker.
  const std::byte* look(uint64_t number);
  // It has been taken. The peer gets slots back in the order in which it has filled them.
  void release(uint64_t number);

 private:
  struct Slot {
    const std::byte* bytes = nullptr;
    bool released = false;
  };

  Port& port_;
  std::array<Slot, kSlotDepth> slots_;
  uint64_t expected_ = 0;
  uint64_t arrived_ = 0;
  uint64_t returned_ = 0;
};

}  // namespace rdmacoll
