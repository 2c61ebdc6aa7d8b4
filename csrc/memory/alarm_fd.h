// AlarmFd: a timerfd that several share. Each sets it to a time of its own, and it wakes the
// threads that poll it at the first of these, at once or after a while. They end together: a forked
// child of theirs has the timer in common with them, and so must leave it as it is when it ends.
// Floor: memory. Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/memory/unique_fd.h"

namespace rdmacoll {

class AlarmFd {
 public:
  static constexpr int64_t kNever = -1;

  static Result<std::shared_ptr<AlarmFd>> create();
  AlarmFd(const AlarmFd&) = delete;
  AlarmFd& operator=(const AlarmFd&) = delete;

  int get() const { return fd_.get(); }
  // Makes it readable in so long for one of those who share it, at once if that is 0, until the
  // next call for the same one.
  void ring_in_ns(const void* whose, int64_t ns);
  // Whether it is readable for another than this one.
  bool rings_for_others(const void* whose) const;

 private:
  explicit AlarmFd(UniqueFd fd) : fd_(std::move(fd)) {}

  const UniqueFd fd_;
  const SteadyClock clock_;
  mutable std::mutex mutex_;  // what follows
  std::map<const void*, int64_t> times_ns_;
};

}  // namespace rdmacoll
