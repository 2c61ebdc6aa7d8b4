// shm and tcp: a process that can open no more descriptors is called all the same. Set-up does not
// keep its thread busy meanwhile, and the two meet once there are descriptors again.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "csrc/transport/shm/transport.h"
#include "tests/contract/tcp_pair.h"

namespace rdmacoll::out_of_descriptors_test {
namespace {

using Open = std::unique_ptr<Transport> (*)(const Clock&);

std::unique_ptr<Transport> open_one_shm(const Clock& clock) {
  return ShmTransport::open(Config{}, clock, ThisProcess::make().take()).take();
}
std::unique_ptr<Transport> open_one_tcp(const Clock& clock) { return open_tcp(clock); }

// While it lives this process can open none.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest_free = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(lowest_free);
    const rlimit none{static_cast<rlim_t>(lowest_free), before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// A child process that calls again and again. It ends with this.
class Caller {
 public:
  Caller(Open open, const std::string& callee) {
    int pipe[2];
    EXPECT_EQ(::pipe(pipe), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // should the test be killed at its time limit
      const SteadyClock clock;
      const auto transport = open(clock);
      const std::string& mine = transport->info().address;
      if (::write(pipe[1], mine.data(), mine.size()) < 0) ::_exit(1);
      for (;; ::usleep(500)) static_cast<void>(transport->connect(callee, Deadline{0}));
    }
    char said[1024];
    address = std::string(said, static_cast<size_t>(::read(pipe[0], said, sizeof(said))));
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
  ~Caller() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::string address;

 private:
  pid_t pid_;
};

class OutOfDescriptors : public ::testing::TestWithParam<Open> {};

// Which of the two has the smaller id is chance, so some try it.
TEST_P(OutOfDescriptors, SetUpSleepsAndMeetsLater) {
  const SteadyClock clock;
  for (int i = 0; i < 4; ++i) {
    const auto callee = GetParam()(clock);
    const int fd = callee->info().set_up_fd;
    SetUpReport report;
    const auto caller = std::make_unique<Caller>(GetParam(), callee->info().address);
    int quiet = 0;
    {
      const NoDescriptors none;
      for (int look = 0; look < 100; ++look) {
        pollfd waited{fd, POLLIN, 0};
        quiet += ::poll(&waited, 1, 1) == 0;
        callee->serve(report);
        EXPECT_TRUE(report.callers.empty());
      }
    }
    EXPECT_GT(quiet, 0);
    const Deadline deadline = Deadline::after_ms(clock, 20'000);
    bool has_met = false;
    while (!has_met && !deadline.passed(clock)) {
      pollfd waited{fd, POLLIN, 0};
      if (::poll(&waited, 1, 20'000) != 1) continue;
      callee->serve(report);
      for (const std::string& address : std::exchange(report.callers, {})) {
        has_met = callee->connect(address, Deadline{0}).ok();
      }
    }
    EXPECT_TRUE(has_met);
  }
}

INSTANTIATE_TEST_SUITE_P(Real, OutOfDescriptors, ::testing::Values(&open_one_shm, &open_one_tcp),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "Shm" : "Tcp");
                         });

}  // namespace
}  // namespace rdmacoll::out_of_descriptors_test
