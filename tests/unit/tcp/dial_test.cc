// Dial: one process at several addresses, of which some refuse, take no calls, say nothing or
// belong to another; and how soon it gives up. Time is the test's own.
#include "csrc/transport/tcp/connection/dial.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>

#include <list>

#include "tests/unit/tcp/listeners.h"

namespace rdmacoll::tcp::dial_test {
namespace {

using Progress = Dial::Progress;

constexpr int64_t kMs = 1'000'000;
const ProcessId kMe{1}, kOther{2};

// One that accepts as a process does.
class Acceptor {
 public:
  Acceptor(const ProcessId& process, const std::string& secret, uint8_t streams = 1)
      : process_(process), key_(JobKey::load(secret).take()), streams_(streams) {}

  Endpoint at() const { return listener_.at; }
  int met() const { return met_; }
  void serve() {
    SoleFd fd = accept_from(listener_);
    if (fd.valid()) {
      callers_.emplace_back(std::move(fd),
                            Handshake::accepting(process_, streams_, random_process_id().take()));
    }
    std::erase_if(callers_, [&](HalfOpen& caller) {
      const HalfOpen::Progress progress = caller.advance(key_);
      if (progress == HalfOpen::Progress::Met) met_ += caller.say();
      return progress != HalfOpen::Progress::Waits;
    });
  }

 private:
  const ProcessId process_;
  const JobKey key_;
  const uint8_t streams_;
  const Listener listener_ = listen_at_loopback();
  std::list<HalfOpen> callers_;
  int met_ = 0;
};

class Dials : public ::testing::Test {
 protected:
  Dial dial(std::vector<Endpoint> order) { return Dial(kOther, 0, std::move(order)); }
  // Goes on, step by step, until something has come of it, or so long has passed; by the clock of
  // the test, which leaves the kernel a moment for each step.
  Progress advance(Dial& dial, int64_t for_ms, const std::vector<Acceptor*>& acceptors = {}) {
    const int64_t end_ns = now_ns_ + for_ms * kMs;
    Progress progress;
    do {
      for (Acceptor* acceptor : acceptors) acceptor->serve();
      progress = dial.advance(self_, now_ns_);
      now_ns_ += 10 * kMs;
      ::poll(nullptr, 0, acceptors.empty() ? 0 : 1);
    } while (progress == Progress::Waits && now_ns_ < end_ns);
    return progress;
  }
  int64_t passed_ms() const { return now_ns_ / kMs - 1'000; }

  const JobKey key_ = JobKey::load("secret").take();
  const UniqueFd wait_set_{::epoll_create1(EPOLL_CLOEXEC)};
  const Address me_{kMe, 17, "host", {}};
  const Self self_{me_, 1, key_, wait_set_};
  int64_t now_ns_ = 1'000 * kMs;
};

TEST_F(Dials, TheFirstAddressThatAnswersAsTheProcessWins) {
  const BlackHole hole;
  Acceptor right(kOther, "secret"), other_process({9}, "secret");
  const Listener silent = listen_at_loopback();
  Dial all = dial({nobody(), hole.at(), silent.at, other_process.at(), right.at()});
  ASSERT_EQ(advance(all, 10'000, {&right, &other_process}), Progress::Met);
  EXPECT_LT(passed_ms(), 2'000);
  EXPECT_EQ(all.take_won().to, right.at());
  EXPECT_EQ(right.met(), 1);
}

TEST_F(Dials, ARefusedConnectionEverywhereIsAnErrorInTwoToThreeSeconds) {
  Dial refused = dial({nobody(), nobody()});
  EXPECT_EQ(advance(refused, 10'000), Progress::Failed);
  EXPECT_GE(passed_ms(), 2'000);  // for the other side may be able to dial
  EXPECT_LE(passed_ms(), 3'000);
  EXPECT_EQ(refused.failure().code(), StatusCode::PeerFailed);
  EXPECT_NE(refused.failure().message().find("127.0.0.1:"), std::string::npos);
  EXPECT_NE(refused.failure().message().find("Connection refused"), std::string::npos);
}

TEST_F(Dials, OneThatComesUpWhileItIsDialledIsFound) {
  auto late = std::make_unique<Acceptor>(kOther, "secret");
  const Endpoint at = late->at();
  late.reset();
  Dial dialled = dial({at});
  ASSERT_EQ(advance(dialled, 200), Progress::Waits);
  auto listener = listen_at(at.ip, {at.port, at.port});
  ASSERT_TRUE(listener.ok());
  ASSERT_EQ(advance(dialled, 400), Progress::Waits);
  EXPECT_TRUE(dialled.failure().message().find("no greeting") != std::string::npos)
      << dialled.failure().message();
}

TEST_F(Dials, AnAddressThatTakesNoCallsIsNamedWhileItIsWaitedFor) {
  const BlackHole hole;
  Dial waits = dial({hole.at(), nobody()});
  EXPECT_EQ(advance(waits, 20'000), Progress::Waits);
  EXPECT_NE(waits.failure().message().find(text_of(hole.at()) + ": no answer"), std::string::npos)
      << waits.failure().message();
  EXPECT_NE(waits.failure().message().find("Connection refused"), std::string::npos);
}

TEST_F(Dials, AnotherProcessAtTheAddressIsNamed) {
  Acceptor other({9}, "secret");
  Dial wrong = dial({other.at()});
  EXPECT_EQ(advance(wrong, 10'000, {&other}), Progress::Failed);
  EXPECT_EQ(wrong.failure().code(), StatusCode::PeerFailed);
  EXPECT_NE(wrong.failure().message().find("another process listens there"), std::string::npos);
}

TEST_F(Dials, AnotherSecretAndOtherStreamsAreMismatches) {
  Acceptor other(kOther, "another secret"), more(kOther, "secret", 2);
  for (Acceptor* acceptor : {&other, &more}) {
    Dial wrong = dial({nobody(), acceptor->at()});
    EXPECT_EQ(advance(wrong, 10'000, {acceptor}), Progress::Failed);
    EXPECT_EQ(wrong.failure().code(), StatusCode::Mismatch);
    EXPECT_EQ(acceptor->met(), 0);
  }
}

// It is there, and busy: it hangs up when it has too many strangers.
TEST_F(Dials, OneThatHangsUpIsDialledAgain) {
  Acceptor right(kOther, "secret");
  const Listener listener = listen_at_loopback();
  Dial dialled = dial({listener.at});
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(advance(dialled, 300), Progress::Waits);
    accept_from(listener).reset();
  }
  EXPECT_NE(dialled.failure().message().find("hung up"), std::string::npos)
      << dialled.failure().message();
}

TEST_F(Dials, NoDescriptorIsLeft) {
  Acceptor right(kOther, "secret");
  const UniqueFd before(::dup(0));
  {
    const BlackHole hole;
    Dial all = dial({hole.at(), right.at()});
    ASSERT_EQ(advance(all, 10'000, {&right}), Progress::Met);
  }
  const UniqueFd after(::dup(0));
  EXPECT_EQ(after.get(), before.get() + 1);
}

}  // namespace
}  // namespace rdmacoll::tcp::dial_test
