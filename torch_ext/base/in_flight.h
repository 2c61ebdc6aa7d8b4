// InFlight: how many asynchronous operations of a group are in flight. InCallbacks: that a thread
// runs the callbacks of one. Floor: torch_ext/base. Thread: any.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace rdmacoll::torch_ext {

class InFlight {
 public:
  void begin();
  void end();
  bool busy() const;
  // Waits at most so long until nothing is in flight; whether that came. Operations whose callbacks
  // wait here, as this thread's may, do not count.
  bool wait_idle(int64_t timeout_ms);

 private:
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  int64_t count_ = 0;
  int64_t waiting_ = 0;  // of these, whose callbacks are in wait_idle()
};

// Says, for a scope, that this thread runs callbacks of an operation. Until they have returned the
// operation counts as in flight.
class InCallbacks {
 public:
  explicit InCallbacks(const InFlight& in_flight);  // which counts the operation
  ~InCallbacks();
  InCallbacks(const InCallbacks&) = delete;
  InCallbacks& operator=(const InCallbacks&) = delete;

  // Whether this thread runs any.
  static bool here();
  // Of how many operations that are counted there this thread runs callbacks.
  static int64_t depth_of(const InFlight& in_flight);

 private:
  const InFlight& in_flight_;
  const InCallbacks* const outer_;
};

}  // namespace rdmacoll::torch_ext
