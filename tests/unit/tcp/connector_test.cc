// Connector: two processes meet whoever of them can dial, both at once, over all their streams; and
// strangers cost little, for a second. Time is the test's own.
#include "csrc/transport/tcp/connection/connector.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "tests/processes/holdings.h"
#include "tests/unit/tcp/listeners.h"

namespace rdmacoll::tcp::connector_test {
namespace {

class StepClock final : public Clock {
 public:
  int64_t now_ns() const override { return now_ns_; }
  void step() { now_ns_ += 10'000'000; }

 private:
  int64_t now_ns_ = 1;
};

struct Process {
  Process(const ProcessId& process, const Clock& clock, const std::string& secret = "secret",
          int64_t streams = 1)
      : id(process), key(JobKey::load(secret).take()) {
    TcpConfig config;
    config.interfaces = "=lo";
    config.streams = streams;
    news.ring_by(AlarmFd::create().take());
    auto opened = Connector::open(config, key, {id, 17, "host", {}}, clock, news);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    connector = opened.take();
  }
  Address address() const { return {id, 17, "host", connector->endpoints()}; }
  // As others see it who cannot reach it.
  Address address_at(const Endpoint& elsewhere) const { return {id, 17, "host", {elsewhere}}; }
  bool has_met(const Process& other) {
    if (auto all = connector->take_met(other.id)) met = std::move(*all);
    return !met.empty();
  }

  const ProcessId id;
  const JobKey key;
  SetUpNews news;
  std::unique_ptr<Connector> connector;
  Connections met;
};

class Connectors : public ::testing::Test {
 protected:
  // Serves them until it holds, or so long has passed by the clock of the test.
  template <typename Holds>
  bool until(std::vector<Process*> processes, int64_t for_ms, Holds holds) {
    const int64_t end_ns = clock_.now_ns() + for_ms * 1'000'000;
    do {
      for (Process* process : processes) process->connector->serve();
      if (holds()) return true;
      clock_.step();
      ::poll(nullptr, 0, 1);
    } while (clock_.now_ns() < end_ns);
    return false;
  }
  void expect_to_meet(Process& one, Process& other, int64_t in_ms = 5'000) {
    ASSERT_TRUE(until({&one, &other}, in_ms,
                      [&] {
                        const bool first = one.has_met(other);
                        return other.has_met(one) && first;
                      }))
        << one.connector->why_not(other.id) << other.connector->why_not(one.id);
    ASSERT_EQ(one.met.size(), other.met.size());
    for (size_t i = 0; i < one.met.size(); ++i) {
      EXPECT_EQ(one.met[i].keys.out.low, other.met[i].keys.in.low) << i;
      EXPECT_EQ(one.met[i].keys.in.high, other.met[i].keys.out.high) << i;
      ASSERT_EQ(::send(one.met[i].fd.get(), "x", 1, 0), 1);
      char heard = 0;
      pollfd waited{other.met[i].fd.get(), POLLIN, 0};
      ASSERT_EQ(::poll(&waited, 1, 10'000), 1);
      EXPECT_EQ(::recv(other.met[i].fd.get(), &heard, 1, 0), 1);
    }
  }

  StepClock clock_;
  Process small_{{1}, clock_}, large_{{2}, clock_};
};

TEST_F(Connectors, TwoThatDialEachOtherAtOnceMeetOnce) {
  for (const int64_t streams : {1, 3, 8}) {
    Process one({1}, clock_, "secret", streams), other({2}, clock_, "secret", streams);
    one.connector->meet(other.address());
    other.connector->meet(one.address());
    expect_to_meet(one, other);
    EXPECT_EQ(one.met.size(), static_cast<size_t>(streams));
    EXPECT_FALSE(one.connector->take_met(other.id));
  }
}

// With dials of both under way, which they are when the callback's time has passed for one of them.
TEST_F(Connectors, TwoWhoseDialsCrossMeetOnce) {
  for (int ahead = 0; ahead < 12; ++ahead) {
    Process one({1}, clock_, "secret", 2), other({2}, clock_, "secret", 2);
    other.connector->meet(one.address());
    clock_.step();
    for (int i = 0; i < ahead; ++i) {
      (i % 2 == 0 ? other : one).connector->serve();
      ::poll(nullptr, 0, 1);
    }
    one.connector->meet(other.address());
    expect_to_meet(one, other);
  }
}

TEST_F(Connectors, TheOneThatIsRefusedIsDialled) {
  small_.connector->meet(large_.address_at(nobody()));
  large_.connector->meet(small_.address());
  expect_to_meet(small_, large_);
}

TEST_F(Connectors, TheOneWhoseCallsAreDroppedIsDialled) {
  const BlackHole hole;
  small_.connector->meet(large_.address_at(hole.at()));
  large_.connector->meet(small_.address());
  expect_to_meet(small_, large_);
}

// As where two networks have the same addresses.
TEST_F(Connectors, TheOneThatReachesSomebodySilentIsDialled) {
  const Listener silent = listen_at_loopback();
  small_.connector->meet(large_.address_at(silent.at));
  large_.connector->meet(small_.address());
  expect_to_meet(small_, large_);
}

TEST_F(Connectors, TheLargerIdDialsOnlyWhenItIsNotCalled) {
  large_.connector->meet(small_.address());
  EXPECT_FALSE(
      until({&large_, &small_}, 10, [&] { return small_.connector->is_called_by(large_.id); }));
  EXPECT_TRUE(
      until({&large_, &small_}, 5'000, [&] { return small_.connector->is_called_by(large_.id); }));
  small_.connector->meet(large_.address());
  expect_to_meet(small_, large_);
}

TEST_F(Connectors, WhatTheOtherHasBegunStaysWhenThisOneGivesUp) {
  small_.connector->meet(large_.address());
  ASSERT_TRUE(until({&small_, &large_}, 5'000, [&] {
    return large_.connector->is_called_by(small_.id) && small_.has_met(large_);
  }));
  large_.connector->forget(small_.id);
  EXPECT_TRUE(large_.connector->is_called_by(small_.id));
  EXPECT_TRUE(large_.has_met(small_));
}

TEST_F(Connectors, AnEndedProcessIsAnErrorInSeconds) {
  const Address address = large_.address();
  large_.connector.reset();
  small_.connector->meet(address);
  EXPECT_TRUE(
      until({&small_}, 3'000, [&] { return !small_.connector->failure_of(large_.id).ok(); }));
  EXPECT_EQ(small_.connector->failure_of(large_.id).code(), StatusCode::PeerFailed);
}

TEST_F(Connectors, OneThatWasMetBeforeIsRefused) {
  small_.connector->meet(large_.address());
  large_.connector->meet(small_.address());
  expect_to_meet(small_, large_);
  Process again({1}, clock_);  // as if the process had forgotten
  again.connector->meet(large_.address());
  EXPECT_TRUE(until({&again, &large_}, 5'000,
                    [&] { return !again.connector->failure_of(large_.id).ok(); }));
  EXPECT_NE(again.connector->failure_of(large_.id).message().find("has met this process before"),
            std::string::npos);
}

TEST_F(Connectors, AnotherSecretIsAMismatchAndTheOtherSideSaysWhomItTurnedAway) {
  Process other({1}, clock_, "another secret");
  other.connector->meet(large_.address());
  EXPECT_TRUE(until({&other, &large_}, 5'000,
                    [&] { return !other.connector->failure_of(large_.id).ok(); }));
  EXPECT_EQ(other.connector->failure_of(large_.id).code(), StatusCode::Mismatch);
  EXPECT_NE(large_.connector->why_not({9}).find("did not prove"), std::string::npos);
}

// --- strangers -----------------------------------------------------------------------------------

std::vector<SoleFd> callers_of(const Process& process, size_t count, size_t endpoint = 0) {
  std::vector<SoleFd> callers;
  while (callers.size() < count) {
    callers.push_back(begin_dialling(process.connector->endpoints()[endpoint]));
    EXPECT_TRUE(callers.back().valid());
  }
  return callers;
}

TEST_F(Connectors, SilentStrangersAreSixtyFourAtOnceForASecondEach) {
  constexpr int kStrangers = 64;
  const auto callers = callers_of(large_, 150);
  const int before = Holdings().descriptors;
  const auto taken = [&] { return Holdings().descriptors - before; };
  EXPECT_TRUE(until({&large_}, 500, [&] { return taken() >= kStrangers; }));
  EXPECT_FALSE(until({&large_}, 400, [&] { return taken() != kStrangers; }));
  // The others, in their turns; then none is left.
  EXPECT_TRUE(until({&large_}, 2'500, [&] { return taken() == 150 - 2 * kStrangers; }));
  EXPECT_TRUE(until({&large_}, 2'500, [&] { return taken() == 0; }));
}

// Those that have been there for a moment make room. (The flooded one does not dial.)
TEST_F(Connectors, HonestOnesBehindManySilentStrangersMeetSoon) {
  const auto callers = callers_of(large_, 600);  // a second for each 64 would be nine
  small_.connector->meet(large_.address());
  expect_to_meet(small_, large_, 4'000);
}

TEST_F(Connectors, AFloodAtOneAddressDoesNotKeepOutWhoComesToAnother) {
  const auto endpoints = large_.connector->endpoints();
  if (endpoints.size() < 2) return;  // no IPv6 here
  for (const size_t flooded : {0, 1}) {
    Process one({1}, clock_), other({2}, clock_);
    const auto callers = callers_of(other, 600, flooded);
    one.connector->meet(other.address_at(other.connector->endpoints()[1 - flooded]));
    expect_to_meet(one, other, 1'000);
  }
}

// It may come back to its sockets late: who has said its part by then keeps its place.
TEST_F(Connectors, WhoHasProvedItselfLosesNoPlaceThoughTheOtherComesLate) {
  for (int steps = 0; steps < 6; ++steps) {
    Process one({1}, clock_), other({2}, clock_);
    one.connector->meet(other.address());
    for (int i = 0; i < steps; ++i) {
      (i % 2 == 0 ? one : other).connector->serve();
      ::poll(nullptr, 0, 1);
    }
    const auto callers = callers_of(other, 200);
    other.connector->serve();
    one.connector->serve();
    for (int i = 0; i < 30; ++i) clock_.step();
    expect_to_meet(one, other, 150);
  }
}

TEST_F(Connectors, SilentStrangersLeaveWhoWaitsAsleep) {
  const auto callers = callers_of(large_, 150);
  large_.connector->serve();
  static_cast<void>(large_.connector->wait(0));
  EXPECT_FALSE(large_.connector->wait(50));
  callers_of(large_, 1);
  EXPECT_TRUE(large_.connector->wait(10'000));
}

TEST_F(Connectors, SomebodyDialledWhoSaysNothingLeavesWhoWaitsAsleep) {
  const Listener silent = listen_at_loopback();
  small_.connector->meet(large_.address_at(silent.at));
  EXPECT_FALSE(until({&small_}, 100, [] { return false; }));
  static_cast<void>(small_.connector->wait(0));
  EXPECT_FALSE(small_.connector->wait(50));
}

TEST_F(Connectors, GarbageAndHalfAGreetingHarmNobody) {
  auto callers = callers_of(large_, 3);
  const std::string garbage(100'000, 'g');
  small_.connector->meet(large_.address());
  large_.connector->meet(small_.address());
  ASSERT_TRUE(until({}, 50, [] { return false; }) == false);
  EXPECT_GT(::send(callers[0].get(), garbage.data(), garbage.size(), MSG_NOSIGNAL), 0);
  EXPECT_EQ(::send(callers[1].get(), "rdmatcp", 7, MSG_NOSIGNAL), 7);
  callers[2].reset();
  expect_to_meet(small_, large_);
  EXPECT_TRUE(until({&large_}, 2'000, [&] {
    return large_.connector->why_not({9}).find("does not speak rdmacoll's") != std::string::npos;
  }));
}

TEST_F(Connectors, NoDescriptorIsLeft) {
  const Holdings before;
  {
    Process one({1}, clock_, "secret", 3), other({2}, clock_, "secret", 3);
    const auto callers = callers_of(one, 10);
    one.connector->meet(other.address());
    other.connector->meet(one.address());
    expect_to_meet(one, other);
  }
  EXPECT_EQ(Holdings(), before);
}

}  // namespace
}  // namespace rdmacoll::tcp::connector_test
