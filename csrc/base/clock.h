// Clock: the only source of time above the operating system, so that the simulator can own it.
// Floor: base. Thread: any.
#pragma once

#include <chrono>
#include <cstdint>

namespace rdmacoll {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ns() const = 0;
  // What makes of it the time of day, by which hosts understand each other as far as theirs agree.
  virtual int64_t to_time_of_day_ns() const { return 0; }
};

class SteadyClock final : public Clock {
 public:
  int64_t now_ns() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  int64_t to_time_of_day_ns() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
               .count() -
           now_ns();
  }
};

// A point on a Clock after which a wait gives up. Every wait takes one.
struct Deadline {
  int64_t at_ns;

  static Deadline after_ms(const Clock& clock, int64_t timeout_ms) {
    return Deadline{clock.now_ns() + timeout_ms * 1'000'000};
  }
  bool passed(const Clock& clock) const { return clock.now_ns() >= at_ns; }
  int64_t left_ms(const Clock& clock) const {
    const int64_t left_ns = at_ns - clock.now_ns();
    return left_ns > 0 ? (left_ns + 999'999) / 1'000'000 : 0;
  }
};

}  // namespace rdmacoll
