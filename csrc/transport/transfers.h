// Transfers: what is under way to a peer, or from it, numbered in the order in which it was posted,
// and how far all of it is done. Floor: transport. Thread: the driver; done any.
#pragma once

#include <atomic>
#include <cstdint>

#include "csrc/transport/transport.h"

namespace rdmacoll {

struct Transfers {
  uint64_t posted = 0;            // the number of the newest
  std::atomic<uint64_t> done{0};  // all up to this one; the largest number once the peer has ended

  void raise_done(uint64_t up_to) {
    uint64_t before = done.load(std::memory_order_relaxed);
    while (before < up_to &&
           !done.compare_exchange_weak(before, up_to, std::memory_order_release)) {
    }
  }
  Ticket newest() const { return Ticket(done, posted); }
};

}  // namespace rdmacoll
