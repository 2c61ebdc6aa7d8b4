// SpinTrial and LookBeforeSleep: whether it is worth looking around for a moment, for what may come
// at once, learnt from how it went before. Floor: engine/drive. Thread: the driver.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rdmacoll {

// Whoever spins in vain does without the next times: once, then 3, 7 and 15 times.
class SpinTrial {
 public:
  // Whether this time does without.
  bool skips() {
    if (to_skip_ == 0) return false;
    --to_skip_;
    return true;
  }
  void note(bool in_vain) {
    skipped_last_ = in_vain ? std::min(2 * skipped_last_ + 1, kMost) : 0;
    to_skip_ = skipped_last_;
  }

 private:
  static constexpr uint32_t kMost = 15;
  uint32_t to_skip_ = 0;
  uint32_t skipped_last_ = 0;
};

// Of a wait for transports of which every look is a call of the system. Where the cores are free,
// what comes is seen sooner by one that looks around than by one that has to be woken. Where they
// are not, the system runs at once who was asleep, and lets who has looked around wait its turn.
class LookBeforeSleep {
 public:
  // The wait begins.
  void begin(int64_t now_ns) {
    decided_ = looks_ = false;
    since_ns_ = now_ns;
  }
  bool is_looking() const { return looks_; }
  // What was waited for has come.
  void note_moved(int64_t now_ns) {
    if (looks_) trial_.note(now_ns - since_ns_ > kLookNs);
    begin(now_ns);
  }
  // Nothing has come yet. Whether to look again at once; else it is time to sleep.
  bool looks_again(int64_t now_ns) {
    if (!decided_) looks_ = !trial_.skips();
    decided_ = true;
    if (!looks_) return false;
    if (now_ns - since_ns_ <= kLookNs) return true;
    trial_.note(true);
    looks_ = false;
    return false;
  }

 private:
  static constexpr int64_t kLookNs = 30'000;  // a few ways through two hosts
  SpinTrial trial_;
  bool decided_ = false;
  bool looks_ = false;
  int64_t since_ns_ = 0;
};

}  // namespace rdmacoll
