// Runs a check in a child process whose user namespace maps no user: the kernel shows all users
// there by one id. Floor: tests. Thread: any, while the process has no other.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rdmacoll {

// For the calling process. The kernel makes none in a chroot, so root leaves it and comes back.
inline bool enter_user_namespace() {
  const int root = ::open("/", O_PATH | O_CLOEXEC);
  const int mounts = ::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  [[maybe_unused]] const int left = ::setns(mounts, CLONE_NEWNS);  // not allowed to other users
  return ::unshare(CLONE_NEWUSER) == 0 && ::fchdir(root) == 0 && ::chroot(".") == 0;
}

template <typename Check>
void expect_in_user_namespace(const Check& holds) {
  constexpr int kHolds = 10, kDoesNot = 11, kNotAllowed = 12;
  const pid_t child = ::fork();
  if (child == 0) {
    if (!enter_user_namespace()) ::_exit(kNotAllowed);
    ::_exit(holds() ? kHolds : kDoesNot);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kNotAllowed) {
    GTEST_SKIP() << "this machine allows no user namespaces";
  }
  EXPECT_EQ(WEXITSTATUS(status), kHolds);
}

}  // namespace rdmacoll
