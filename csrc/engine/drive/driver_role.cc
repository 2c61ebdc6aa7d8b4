// DriverRole. Floor: engine/drive. Thread: see driver_role.h.
#include "csrc/engine/drive/driver_role.h"

#include <chrono>

namespace rdmacoll {
namespace {

// Longest sleep of one that wants the role or its work done: no wake-up is lost, but a driver that
// waits itself makes no way, and may come to sleep in its own time.
constexpr std::chrono::milliseconds kLongestPark{10};

}  // namespace

void DriverRole::take() {
  wanted_.fetch_add(1);
  wake_driver();
  std::unique_lock<std::mutex> lock(mutex_);
  while (!try_take_now()) {
    free_.wait_for(lock, kLongestPark);
    wake_driver();
  }
  wanted_.fetch_sub(1);
}

void DriverRole::park(const Work& work) {
  parked_.fetch_add(1);
  // A background driver makes way for a parked waiter; a driver that waits itself does not.
  wake_driver();
  std::unique_lock<std::mutex> lock(mutex_);
  free_.wait_for(lock, kLongestPark, [&] { return !taken_ || work.done(); });
  parked_.fetch_sub(1);
}

}  // namespace rdmacoll
