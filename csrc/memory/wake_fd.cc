// WakeFd. Floor: memory.
#include "csrc/memory/wake_fd.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>

namespace rdmacoll {

Result<WakeFd> WakeFd::create() {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return Status::from_errno("eventfd", errno);
  return WakeFd(std::move(fd));
}

// A write fails only where the counter is full, and then the descriptor is readable already.
void WakeFd::ring() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof one);
}

void WakeFd::drain() const {
  uint64_t rings;
  [[maybe_unused]] const ssize_t drained = ::read(fd_.get(), &rings, sizeof rings);
}

}  // namespace rdmacoll
