// InFlight and InCallbacks. Floor: torch_ext/base.
#include "torch_ext/base/in_flight.h"

#include <chrono>
#include <utility>

namespace rdmacoll::torch_ext {
namespace {

thread_local const InCallbacks* innermost = nullptr;

}  // namespace

void InFlight::begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++count_;
}

void InFlight::end() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--count_ <= waiting_) idle_.notify_all();
}

bool InFlight::busy() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return count_ != 0;
}

bool InFlight::wait_idle(int64_t timeout_ms) {
  const int64_t own = InCallbacks::depth_of(*this);
  std::unique_lock<std::mutex> lock(mutex_);
  waiting_ += own;
  if (own > 0) idle_.notify_all();
  const bool idle = idle_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                                   [&] { return count_ <= waiting_; });
  waiting_ -= own;
  return idle;
}

InCallbacks::InCallbacks(const InFlight& in_flight)
    : in_flight_(in_flight), outer_(std::exchange(innermost, this)) {}
InCallbacks::~InCallbacks() { innermost = outer_; }

bool InCallbacks::here() { return innermost != nullptr; }

int64_t InCallbacks::depth_of(const InFlight& in_flight) {
  int64_t depth = 0;
  for (const InCallbacks* at = innermost; at != nullptr; at = at->outer_) {
    depth += &at->in_flight_ == &in_flight ? 1 : 0;
  }
  return depth;
}

}  // namespace rdmacoll::torch_ext
