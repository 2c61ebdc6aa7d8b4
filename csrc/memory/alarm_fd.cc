// AlarmFd. Floor: memory.
#include "csrc/memory/alarm_fd.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

namespace rdmacoll {
namespace {

constexpr int64_t kAtOnce = 1;  // of all times the first; 0 would stop the timer

// To set a time also takes back what has rung before. One that has passed rings at once.
void set(int fd, int64_t at_ns) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  itimerspec when{};
  if (at_ns != AlarmFd::kNever) {
    when.it_value.tv_sec = at_ns / kSecondNs;
    when.it_value.tv_nsec = at_ns % kSecondNs;
  }
  ::timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace

Result<std::shared_ptr<AlarmFd>> AlarmFd::create() {
  UniqueFd fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!fd.valid()) return Status::from_errno("timerfd_create", errno);
  return std::shared_ptr<AlarmFd>(new AlarmFd(std::move(fd)));
}

void AlarmFd::ring_in_ns(const void* whose, int64_t ns) {
  const std::lock_guard lock(mutex_);
  if (ns == kNever) {
    times_ns_.erase(whose);
  } else {
    times_ns_[whose] = ns == 0 ? kAtOnce : clock_.now_ns() + ns;
  }
  const auto first = std::min_element(
      times_ns_.begin(), times_ns_.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  // Also where that has not changed: a forked child may have set the timer meanwhile.
  set(fd_.get(), first == times_ns_.end() ? kNever : first->second);
}

bool AlarmFd::rings_for_others(const void* whose) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(times_ns_.begin(), times_ns_.end(), [&](const auto& one) {
    return one.first != whose && one.second <= clock_.now_ns();
  });
}

}  // namespace rdmacoll
