// WakeFd: a ring is seen by whoever polls, once, and from any thread.
#include "csrc/memory/wake_fd.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

namespace rdmacoll::wake_fd_test {
namespace {

bool readable(const WakeFd& fd, int timeout_ms) {
  pollfd waited{fd.get(), POLLIN, 0};
  return ::poll(&waited, 1, timeout_ms) == 1;
}

TEST(WakeFd, IsReadableFromTheFirstRingUntilItIsDrained) {
  const WakeFd fd = WakeFd::create().take();
  EXPECT_FALSE(readable(fd, 0));
  fd.drain();  // does not block
  fd.ring();
  fd.ring();
  EXPECT_TRUE(readable(fd, 0));
  fd.drain();
  EXPECT_FALSE(readable(fd, 0)) << "two rings are one wake";
}

TEST(WakeFd, WakesAThreadThatSleeps) {
  const WakeFd fd = WakeFd::create().take();
  std::thread other([&] { fd.ring(); });
  EXPECT_TRUE(readable(fd, 20'000));
  other.join();
}

}  // namespace
}  // namespace rdmacoll::wake_fd_test
