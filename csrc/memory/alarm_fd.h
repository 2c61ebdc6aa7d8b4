// AlarmFd: a timerfd. It wakes the thread that polls it, at once or after a while.
// Floor: memory. Thread: a value; its calls one at a time.
#pragma once

#include <cstdint>

#include "csrc/base/status.h"
#include "csrc/memory/unique_fd.h"

namespace rdmacoll {

class AlarmFd {
 public:
  static Result<AlarmFd> create();
  AlarmFd() = default;

  int get() const { return fd_.get(); }
  // Makes it readable in so long, at once if that is 0, until the next call.
  void ring_in_ns(int64_t ns) const;
  void silence() const;

 private:
  explicit AlarmFd(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace rdmacoll
