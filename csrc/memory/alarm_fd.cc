// AlarmFd. Floor: memory.
#include "csrc/memory/alarm_fd.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

namespace rdmacoll {
namespace {

// To set a time also takes back what has rung before.
void set(int fd, int64_t ns) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  itimerspec when{};
  when.it_value.tv_sec = ns / kSecondNs;
  when.it_value.tv_nsec = ns % kSecondNs;
  ::timerfd_settime(fd, 0, &when, nullptr);
}

}  // namespace

Result<AlarmFd> AlarmFd::create() {
  UniqueFd fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!fd.valid()) return Status::from_errno("timerfd_create", errno);
  return AlarmFd(std::move(fd));
}

void AlarmFd::ring_in_ns(int64_t ns) const { set(fd_.get(), std::max<int64_t>(ns, 1)); }

void AlarmFd::silence() const { set(fd_.get(), 0); }

}  // namespace rdmacoll
