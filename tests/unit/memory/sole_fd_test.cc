// SoleFd: a forked child has no copy, neither of what is open nor of what another thread opens at
// that moment, and harms nobody else's descriptor.
#include "csrc/memory/sole_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <functional>
#include <thread>

#include "csrc/memory/unique_fd.h"
#include "tests/processes/holdings.h"

namespace rdmacoll::sole_fd_test {
namespace {

SoleFd a_copy_of(int fd) {
  return SoleFd::made_by([fd] { return ::dup(fd); });
}

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

// Whether it holds in a forked child.
bool in_child(const std::function<bool()>& holds) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(holds() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status == 0;
}

TEST(SoleFd, IsTheParentsAlone) {
  const SoleFd fd = a_copy_of(0);
  const int number = fd.get();
  EXPECT_TRUE(in_child([&] { return !fd.valid() && fd.get() == -1 && !is_open(number); }));
  EXPECT_EQ(fd.get(), number);
  EXPECT_TRUE(is_open(number));
}

TEST(SoleFd, AConnectionEndsWithTheParentThoughTheChildLives) {
  int ends[2], lives[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  ASSERT_EQ(::pipe2(lives, O_CLOEXEC), 0);
  const UniqueFd far(ends[1]), child_waits(lives[0]);
  SoleFd near = SoleFd::made_by([&] { return ends[0]; });
  UniqueFd child_ends(lives[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    child_ends.reset();
    char byte;
    [[maybe_unused]] const ssize_t got = ::read(child_waits.get(), &byte, 1);
    ::_exit(0);
  }
  pollfd waited{far.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waited, 1, 0), 0) << "the fork has ended it";
  near.reset();
  EXPECT_EQ(::poll(&waited, 1, 10'000), 1);  // once the child has begun to run
  char byte;
  EXPECT_EQ(::recv(far.get(), &byte, 1, MSG_DONTWAIT), 0);
  EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "the child has ended before";
  child_ends.reset();
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(SoleFd, ANumberThatIsSomebodyElsesNowStaysOpenInTheChild) {
  SoleFd closed = a_copy_of(0);
  const int number = closed.get();
  closed.reset();
  const UniqueFd next(::dup(0));
  ASSERT_EQ(next.get(), number);
  EXPECT_TRUE(in_child([&] { return is_open(number); }));
}

TEST(SoleFd, WhatTheChildLetsGoOfIsNotWhatItHasOpened) {
  SoleFd parents = a_copy_of(0);
  const int number = parents.get();
  EXPECT_TRUE(in_child([&] {
    const UniqueFd own(::dup(0));
    SoleFd moved = std::move(parents);
    moved.reset();
    return own.get() == number && is_open(number);
  }));
}

TEST(SoleFd, AChildsOwnIsNotItsChilds) {
  const SoleFd parents = a_copy_of(0);
  EXPECT_TRUE(in_child([&] {
    const SoleFd childs = a_copy_of(0);
    const int number = childs.get();
    return is_open(number) && in_child([&] { return !childs.valid() && !is_open(number); }) &&
           is_open(number);
  }));
}

TEST(SoleFd, AForkBesideAThreadThatOpensAndClosesCopiesNone) {
  const int before = Holdings().descriptors;
  std::atomic<bool> ends = false;
  std::thread other([&] {
    while (!ends) const SoleFd fd = a_copy_of(0);
  });
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(in_child([&] { return entries_of("/proc/self/fd") == before; })) << i;
  }
  ends = true;
  other.join();
}

TEST(SoleFd, OneThatCannotBeOpenedSaysWhy) {
  const SoleFd fd = a_copy_of(-1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_FALSE(fd.valid());
}

}  // namespace
}  // namespace rdmacoll::sole_fd_test
