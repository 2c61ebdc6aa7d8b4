// Driven: what a driver drives, as it sees it. Floor: engine/drive. Thread: idle() and beat() any;
// the rest belongs to the driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "csrc/base/check.h"
#include "csrc/engine/drive/driver_role.h"
#include "csrc/engine/work/work.h"

namespace rdmacoll {

// What is left to do for one that is driven.
struct Load {
  std::atomic<bool> has_new{false};  // submissions or a failure to act on
  std::atomic<uint64_t> in_flight{0};
};

class Driven {
 public:
  virtual ~Driven() = default;

  // Whoever has this role drives it from here on. A simulated driver has none.
  void set_role([[maybe_unused]] const DriverRole& role) {
#ifndef NDEBUG
    role_ = &role;
#endif
  }
  // Nothing in flight and nothing for the driver to act on. Asked in every round, so not virtual.
  bool idle() const {
    return load_.in_flight.load(std::memory_order_acquire) == 0 &&
           !load_.has_new.load(std::memory_order_acquire);
  }
  // One round over everything in flight; whether anything moved.
  virtual bool advance(std::vector<Completion>& finished) = 0;
  // What is looked at now and then: deadlines, peers that are gone.
  virtual void check(std::vector<Completion>& finished) = 0;
  // Fails what is in flight and tells the peers. Nothing may follow.
  virtual void close(std::vector<Completion>& finished) = 0;
  // Shows that this process runs. Whether the driver is to do a round, although this one is idle.
  virtual bool beat() = 0;

 protected:
  // In debug builds: that the thread which calls this has the role.
  void check_driver() const {
#ifndef NDEBUG
    RDMACOLL_CHECK(role_ == nullptr || role_->is_mine());
#endif
  }

  Load load_;

 private:
#ifndef NDEBUG
  const DriverRole* role_ = nullptr;
#endif
};

}  // namespace rdmacoll
