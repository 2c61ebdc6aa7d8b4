// NamedTimes: when an operation was submitted on this rank, when its ranks had agreed about it, and
// when it ended, for a timeline. Who looks at them keeps no tensors.
// Floor: torch_ext/order. Thread: any; agree() and end() once each.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "csrc/base/clock.h"

namespace rdmacoll::torch_ext {

class NamedTimes {
 public:
  explicit NamedTimes(int64_t submitted_ns = SteadyClock().now_ns())
      : submitted_ns_(submitted_ns) {}

  // Of the monotonic clock; 0: not yet. What has ended does not change: read that first.
  int64_t submitted_ns() const { return submitted_ns_; }
  int64_t agreed_ns() const { return agreed_ns_.load(std::memory_order_relaxed); }
  int64_t ended_ns() const { return ended_ns_.load(std::memory_order_acquire); }
  bool has_failed() const { return has_failed_.load(std::memory_order_relaxed); }

  void agree(int64_t at_ns) { agreed_ns_.store(at_ns, std::memory_order_relaxed); }
  void end(bool has_failed) {
    has_failed_.store(has_failed, std::memory_order_relaxed);
    ended_ns_.store(SteadyClock().now_ns(), std::memory_order_release);
  }

 private:
  const int64_t submitted_ns_;
  std::atomic<int64_t> agreed_ns_{0};
  std::atomic<int64_t> ended_ns_{0};
  std::atomic<bool> has_failed_{false};
};

// Of an operation that has begun without a name, as it needs no agreement.
inline std::shared_ptr<NamedTimes> times_of(c10d::Work& work, int64_t begun_ns) {
  auto times = std::make_shared<NamedTimes>(begun_ns);
  times->agree(begun_ns);
  work.getFuture()->addCallback(
      [times](c10::ivalue::Future& future) { times->end(future.hasError()); });
  return times;
}

}  // namespace rdmacoll::torch_ext
