// Fence: ends once all that was asked for before it has ended here. Where memory is mapped the
// other process can see it then; elsewhere it is asked whether it does (Transfer::then). Floor:
// engine/session. Thread: the driver.
#pragma once

#include <atomic>
#include <string>

#include "csrc/engine/session/transfer.h"

namespace rdmacoll {

class Fence final : public Transfer {
 public:
  State advance(const Way& way) override {
    if (!way.is_first) return State::Waits;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return State::Ended;
  }
  bool is_under_way() const override { return false; }
  What what() const override { return {FlightKind::Fence}; }
};

}  // namespace rdmacoll
