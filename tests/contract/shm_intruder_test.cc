// shm: what other processes of the machine can do while two processes meet. They flood the
// listener, connect and stay silent, listen and hang up, or pass a descriptor that blocks. A
// process that is turned away, and one that turns another away, says why.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>

#include "tests/contract/shm_pair.h"
#include "tests/processes/holdings.h"
#include "tests/user_namespace.h"

namespace rdmacoll::shm_intruder_test {
namespace {

constexpr uid_t kNobody = 65534;

int open_descriptors() { return entries_of("/proc/self/fd"); }

std::string socket_of(const ShmTransport& transport) {
  return socket_name(parse_shm_address(transport.info().address).value().process);
}

// A child process, which belongs to another user if this one is root. It ends with its Intruder.
class Intruder {
 public:
  explicit Intruder(const std::function<void()>& act, uid_t user = kNobody) : pid_(::fork()) {
    if (pid_ != 0) return;
    if (::geteuid() == 0 && ::setresuid(user, user, user) != 0) ::_exit(1);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // should the test be killed at its time limit
    act();
    for (;;) ::pause();
  }
  ~Intruder() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  const pid_t pid_;
};

class ShmIntruder : public ::testing::Test {
 protected:
  // The address of a process that never dials: by the id in it the victim is the one that waits.
  std::string address_of_nobody() {
    ShmAddress address = parse_shm_address(victim_->info().address).take();
    address.process = nobody_.id;
    return encode(address);
  }
  Status wait_in_vain(int64_t timeout_ms) {
    return victim_->connect(address_of_nobody(), Deadline::after_ms(clock_, timeout_ms)).status();
  }
  // Waits in vain again and again until it holds; false when that takes too long.
  bool until(const std::function<bool()>& holds) {
    const Deadline deadline = Deadline::after_ms(clock_, 60'000);
    while (!holds() && !deadline.passed(clock_)) {
      EXPECT_EQ(wait_in_vain(200).code(), StatusCode::Timeout);
    }
    return holds();
  }
  void expect_honest_ones_to_meet() {
    const auto other = open_shm(clock_);
    const Deadline deadline = Deadline::after_ms(clock_, 60'000);
    Status outcome;
    std::thread thread(
        [&] { outcome = other->connect(victim_->info().address, deadline).status(); });
    const Status mine = victim_->connect(other->info().address, deadline).status();
    thread.join();
    EXPECT_TRUE(mine.ok()) << mine.message();
    EXPECT_TRUE(outcome.ok()) << outcome.message();
  }

  const SteadyClock clock_;
  const std::unique_ptr<ShmTransport> victim_ = open_shm(clock_);
  const SilentProcess nobody_;
};

TEST_F(ShmIntruder, AFloodOfConnectionsDelaysNoDeadlineAndHonestOnesMeet) {
  const auto flood = [&] {
    for (;;) PeerSocket::dial(socket_of(*victim_)).status();
  };
  const Intruder one(flood), two(flood), three(flood);
  const Deadline hundred_times = Deadline::after_ms(clock_, 30'000);  // a loaded machine is slow
  EXPECT_EQ(wait_in_vain(300).code(), StatusCode::Timeout);
  EXPECT_FALSE(hundred_times.passed(clock_));
  expect_honest_ones_to_meet();
}

TEST_F(ShmIntruder, SilentConnectionsTakeFewDescriptorsAndHonestOnesMeet) {
  const int before = open_descriptors();
  const Intruder silent(
      [&] {
        std::vector<PeerSocket> connections;
        while (connections.size() < 900) {
          auto dialled = PeerSocket::dial(socket_of(*victim_));
          if (dialled.ok() && dialled.value().valid()) connections.push_back(dialled.take());
        }
        for (;;) ::pause();
      },
      ::geteuid());
  EXPECT_TRUE(until([&] { return open_descriptors() > before + 200; }));
  EXPECT_EQ(wait_in_vain(500).code(), StatusCode::Timeout);  // for the rest of them to come
  EXPECT_LT(open_descriptors(), before + 300);
  expect_honest_ones_to_meet();
}

TEST_F(ShmIntruder, AnotherUserIsTurnedAwayAndNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const Intruder other([&] { (new PeerSocket(PeerSocket::dial(socket_of(*victim_)).take())); });
  Status status;
  EXPECT_TRUE(until([&] {
    status = wait_in_vain(100);
    return status.message().find("belongs to user 65534, this one to user 0") != std::string::npos;
  })) << status.message();
}

// The error used to say that the other may be late, stuck or dead; or, once it had ended, that it
// does not listen.
TEST_F(ShmIntruder, OneThatHangsUpIsSaidToHaveTurnedThisProcessAway) {
  ShmAddress address = parse_shm_address(victim_->info().address).take();
  address.process[0] = 0xFF;  // so that this process dials
  SoleFd listener = PeerSocket::listen(socket_name(address.process)).take();
  std::atomic<bool> ends{false};
  std::thread thread([&] {
    while (!ends) UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
  });
  const auto why = [&](StatusCode code) {
    const Status status =
        victim_->connect(encode(address), Deadline::after_ms(clock_, 300)).status();
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find("it turned this process away"), std::string::npos)
        << status.message();
  };
  why(StatusCode::Timeout);
  ends = true;
  thread.join();
  listener.reset();
  why(StatusCode::PeerFailed);  // and does not listen any more
}

TEST_F(ShmIntruder, OneOfAnotherVersionIsNamedAtOnce) {
  ShmAddress address = parse_shm_address(victim_->info().address).take();
  address.process[0] = 0xFF;
  SoleFd listener = PeerSocket::listen(socket_name(address.process)).take();
  UniqueFd connection;
  std::atomic<bool> over{false};
  std::thread thread([&] {
    while (!connection.valid() && !over) {
      connection = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
    }
    EXPECT_EQ(::send(connection.get(), "another version", 15, 0), 15);
  });
  const Status status =
      victim_->connect(encode(address), Deadline::after_ms(clock_, 20'000)).status();
  over = true;
  thread.join();
  EXPECT_EQ(status.code(), StatusCode::Mismatch) << status.message();
  EXPECT_NE(status.message().find("this version of rdmacoll"), std::string::npos);
}

TEST_F(ShmIntruder, AHostNameIsPrintedWithoutControlCharacters) {
  ShmAddress address = parse_shm_address(victim_->info().address).take();
  address.host = "\033[2Jgone";
  const Status status = victim_->connect(encode(address), Deadline::after_ms(clock_, 20)).status();
  EXPECT_EQ(status.message().find('\033'), std::string::npos);
  EXPECT_NE(status.message().find("\\x1b[2Jgone"), std::string::npos) << status.message();
}

// A bell is rung in the middle of an operation, where a write must not block.
TEST(ShmBell, AWriteToTheEventfdOfAPeerNeverBlocks) {
  const UniqueFd passed(::eventfd(0, EFD_CLOEXEC));
  ASSERT_TRUE(make_bell(passed).ok());
  const uint64_t most = UINT64_MAX - 1;
  ASSERT_EQ(::write(passed.get(), &most, sizeof most), 8);
  EXPECT_EQ(::write(passed.get(), &most, sizeof most), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(ShmBell, ADescriptorThatIsNoEventfdIsRefused) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const UniqueFd out(pipe[0]), in(pipe[1]);
  EXPECT_EQ(make_bell(in).code(), StatusCode::InvalidArgument);
}

#ifndef __SANITIZE_THREAD__  // it has a thread of its own, and only a single thread may unshare
// In a namespace without a map the kernel shows all users by one id: nobody counts as this user.
TEST(ShmUser, InAUserNamespaceWithoutAMapNobodyIsMet) {
  expect_in_user_namespace([] {
    const auto id_of = [](const ShmTransport& transport) {
      return parse_shm_address(transport.info().address).value().process;
    };
    const SteadyClock clock;
    const auto one = open_shm(clock), other = open_shm(clock);
    ShmTransport& dials = id_of(*one) < id_of(*other) ? *one : *other;
    const std::string address = (&dials == one.get() ? *other : *one).info().address;
    const Status status = dials.connect(address, Deadline::after_ms(clock, 10'000)).status();
    const bool named = status.message().find("user namespace") != std::string::npos;
    return status.code() == StatusCode::Unsupported && named;
  });
}
#endif

}  // namespace
}  // namespace rdmacoll::shm_intruder_test
