// tcp: what strangers can do while two processes meet. They connect and say nothing, flood, send
// garbage before and after a greeting, or listen where a process is expected; and whom the error
// names.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "tests/contract/says.h"
#include "tests/contract/tcp_pair.h"
#include "tests/contract/tcp_rogue.h"
#include "tests/processes/holdings.h"

namespace rdmacoll::tcp_intruder_test {
namespace {

// A child process. It ends with its Intruder.
class Intruder {
 public:
  explicit Intruder(const std::function<void()>& act) : pid_(::fork()) {
    if (pid_ != 0) return;
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

class TcpIntruder : public ::testing::Test {
 protected:
  tcp::Endpoint door() const {
    return tcp::parse_address(victim_->info().address).value().endpoints[0];
  }
  SoleFd call() const {
    SoleFd fd = tcp::begin_dialling(door());
    pollfd connected{fd.get(), POLLOUT, 0};
    ::poll(&connected, 1, 1'000);
    return fd;
  }
  // Of a process with the smallest id, which so has to dial, and never does; elsewhere nobody
  // listens either.
  std::string address_of_nobody() const {
    tcp::Address address = tcp::parse_address(victim_->info().address).take();
    address.process = {};
    return encode(address);
  }
  Status wait_in_vain(int64_t timeout_ms) {
    return victim_->connect(address_of_nobody(), Deadline::after_ms(clock_, timeout_ms)).status();
  }
  void expect_honest_ones_to_meet() {
    const auto other = open_tcp(clock_);
    PeerId others_id = 0, victims_id = 0;
    meet(*victim_, *other, &others_id, &victims_id);
  }

  const SteadyClock clock_;
  const std::unique_ptr<TcpTransport> victim_ = open_tcp(clock_);
};

TEST_F(TcpIntruder, AFloodOfConnectionsDelaysNoDeadlineAndHonestOnesMeet) {
  const auto flood = [&] {
    for (;;) {
      const SoleFd fd = call();
      const linger none{1, 0};
      ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    }
  };
  const Intruder one(flood), two(flood);
  const Deadline hundred_times = Deadline::after_ms(clock_, 25'000);  // a loaded machine is slow
  EXPECT_EQ(wait_in_vain(250).code(), StatusCode::Timeout);
  EXPECT_FALSE(hundred_times.passed(clock_));
  expect_honest_ones_to_meet();
}

TEST_F(TcpIntruder, SilentConnectionsTakeFewDescriptorsAndHonestOnesMeet) {
  constexpr int kStrangers = 64;
  const int before = Holdings().descriptors;
  const Intruder silent([&] {
    std::vector<SoleFd> connections;
    while (connections.size() < 300) connections.push_back(call());
    for (;;) ::pause();
  });
  const Deadline deadline = Deadline::after_ms(clock_, 20'000);
  while (Holdings().descriptors < before + kStrangers && !deadline.passed(clock_)) {
    EXPECT_EQ(wait_in_vain(100).code(), StatusCode::Timeout);
  }
  EXPECT_LE(Holdings().descriptors, before + kStrangers + 1);  // one for its own dial
  // They wake set-up now and then, and call nobody.
  SetUpReport report;
  int quiet = 0;
  for (int look = 0; look < 200; ++look) {
    quiet += !is_readable(victim_->info().set_up_fd);
    victim_->serve(report);
    EXPECT_TRUE(report.callers.empty());
  }
  EXPECT_GT(quiet, 0);
  expect_honest_ones_to_meet();
}

TEST_F(TcpIntruder, GarbageBeforeAndAfterAGreetingHarmsNobodyAndIsNamed) {
  tcp::Greeting greeting;
  greeting.from = {9};
  greeting.to = tcp::parse_address(victim_->info().address).value().process;
  const std::string hello(bytes_to_sign(greeting));
  std::vector<SoleFd> callers;
  for (const std::string& said : {std::string(100'000, 'g'), hello + std::string(100'000, 'g'),
                                  hello.substr(0, 20), std::string("GET / HTTP/1.1\r\n\r\n")}) {
    callers.push_back(call());
    EXPECT_GT(::send(callers.back().get(), said.data(), said.size(), MSG_NOSIGNAL), 0);
  }
  expect_honest_ones_to_meet();
  const Status waited = wait_in_vain(250);
  EXPECT_TRUE(says(waited, "meanwhile this process turned one away")) << waited.message();
}

TEST_F(TcpIntruder, WhoeverDoesNotKnowTheSecretIsRefusedOnBothSides) {
  for (const char* secret : {"another secret", ""}) {
    const auto other = open_tcp(clock_, {.secret = secret});
    const Deadline deadline = Deadline::after_ms(clock_, 20'000);
    Status outcome[2];
    std::thread thread(
        [&] { outcome[1] = other->connect(victim_->info().address, deadline).status(); });
    outcome[0] = victim_->connect(other->info().address, deadline).status();
    thread.join();
    EXPECT_FALSE(deadline.passed(clock_));
    for (const Status& status : outcome) {
      EXPECT_EQ(status.code(), StatusCode::Mismatch) << status.message();
      EXPECT_TRUE(says(status, "did not prove that it knows the secret of this job"))
          << status.message();
    }
  }
}

TEST_F(TcpIntruder, OtherStreamsAreNamed) {
  const auto other = open_tcp(clock_, {.streams = 2});
  const Deadline deadline = Deadline::after_ms(clock_, 20'000);
  Status outcome[2];
  std::thread thread(
      [&] { outcome[1] = other->connect(victim_->info().address, deadline).status(); });
  outcome[0] = victim_->connect(other->info().address, deadline).status();
  thread.join();
  for (const Status& status : outcome) {
    EXPECT_EQ(status.code(), StatusCode::Mismatch) << status.message();
    EXPECT_TRUE(says(status, "RDMACOLL_TCP_STREAMS")) << status.message();
  }
}

TEST_F(TcpIntruder, AnEndedProcessIsAnErrorLongBeforeTheDeadline) {
  auto ends = open_tcp(clock_);
  const std::string address = ends->info().address;
  ends.reset();
  const Deadline deadline = Deadline::after_ms(clock_, 60'000);
  const Status status = victim_->connect(address, deadline).status();
  EXPECT_EQ(status.code(), StatusCode::PeerFailed) << status.message();
  EXPECT_TRUE(says(status, "cannot be reached")) << status.message();
  EXPECT_TRUE(says(status, "Connection refused")) << status.message();
  EXPECT_FALSE(deadline.passed(clock_));
}

TEST_F(TcpIntruder, AnErrorNamesBothAndPrintsAHostsNameWithoutControlCharacters) {
  tcp::Address address = tcp::parse_address(victim_->info().address).take();
  address.process = {};
  address.host = "\033[2Jgone";
  const Status status = victim_->connect(encode(address), Deadline::after_ms(clock_, 20)).status();
  EXPECT_EQ(status.code(), StatusCode::Timeout);
  EXPECT_EQ(status.message().find('\033'), std::string::npos);
  EXPECT_TRUE(says(status, "\\x1b[2Jgone")) << status.message();
  EXPECT_TRUE(says(status, "RDMACOLL_SOCKET_IFNAME")) << status.message();
}

}  // namespace
}  // namespace rdmacoll::tcp_intruder_test
