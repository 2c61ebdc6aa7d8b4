// Attention: what peers send while nobody drives is taken, by one background thread, and it keeps
// out of the way of everybody else.
#include "csrc/engine/drive/attention.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "csrc/engine/drive/thread_progress.h"
#include "tests/connect_one.h"
#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll::attention_test {
namespace {

constexpr int64_t kLongMs = 20'000;  // no test waits so long that passes

const auto kNothingLeft = [] { return false; };

// A group with one work, which ends in a round of the thread that the test asks for.
struct OneWork final : Driven {
  using EndsIn = std::function<bool(std::thread::id)>;
  WorkPtr start(EndsIn ends_in, const Work::Callback& callback = {}) {
    ends_in_ = std::move(ends_in);
    work_ = std::make_shared<Work>();
    if (callback) work_->on_done(callback);
    load_.in_flight = 1;
    return work_;
  }
  bool advance(std::vector<Completion>& finished) override {
    if (!ends_in_(std::this_thread::get_id())) return false;
    finished.push_back({work_, Status()});
    load_.in_flight = 0;
    return true;
  }
  void check(std::vector<Completion>&) override {}
  void close(std::vector<Completion>&) override {}
  bool beat() override { return false; }

 private:
  EndsIn ends_in_;
  WorkPtr work_;
};

// A process with one transport, over which it has met another.
struct Attended : testing::Test {
  Attended() {
    transport.on_poll = [this] {
      if (takes) come.drain();
      if (std::this_thread::get_id() != here) others_polls.fetch_add(1);
      polls.fetch_add(1);
    };
  }
  void open(bool asks = true) {
    if (asks) transport.ask_for_attention(come.get());
    progress = ThreadProgress::open(transports, clock, 0).take();
    // The background thread sleeps, or will, before anything asks for it.
    FakeTransport its_transport{"fake", "its address"};
    Transports its{{&its_transport}, {"its host", "its host"}, Config{}, clock};
    ASSERT_TRUE(
        connect_one(transports, its.local_address(), Deadline::after_ms(clock, kLongMs), clock)
            .ok());
    progress->add(group);
  }
  // Whether so many rounds more are driven.
  bool sees_polls(uint64_t more) { return sees_polls_up_to(polls.load() + more); }
  bool sees_polls_up_to(uint64_t until) {
    const Deadline deadline = Deadline::after_ms(clock, kLongMs);
    while (polls.load() < until && !deadline.passed(clock)) std::this_thread::yield();
    return polls.load() >= until;
  }
  // Something comes; whether it is taken.
  bool takes_what_comes() {
    const uint64_t before = polls.load();
    come.ring();
    return sees_polls_up_to(before + 1);
  }

  const std::thread::id here = std::this_thread::get_id();
  const OneWork::EndsIn in_this = [this](std::thread::id thread) { return thread == here; };
  const OneWork::EndsIn in_another = [this](std::thread::id thread) { return thread != here; };
  SteadyClock clock;
  const WakeFd come = WakeFd::create().take();
  std::atomic<bool> takes{true};  // false: more comes than can be taken
  std::atomic<uint64_t> polls{0}, others_polls{0};
  FakeTransport transport{"fake", "address"};
  Transports transports{{&transport}, {"host", "host"}, Config{}, clock};
  OneWork group, second;
  std::unique_ptr<ThreadProgress> progress;
};

TEST_F(Attended, WhatComesWhileNobodyDrivesIsTaken) {
  open();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(takes_what_comes()) << i;
  EXPECT_EQ(polls, others_polls);
}

TEST_F(Attended, NobodyPollsWhileNothingComes) {
  open();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(polls, 0u);
  ASSERT_TRUE(takes_what_comes());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(polls, 2u) << "the thread may see what comes a second time before it is taken";
}

TEST_F(Attended, ATransportThatDoesNotAskIsLeftAlone) {
  open(false);
  come.ring();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(polls, 0u);
}

TEST_F(Attended, AsLongAsTransportsAreInUse) {
  open();
  progress->add(second);
  EXPECT_TRUE(takes_what_comes());
  progress->remove(group);
  EXPECT_TRUE(takes_what_comes());
  progress->remove(second);
  EXPECT_TRUE(takes_what_comes()) << "peers may say that they leave";
}

TEST_F(Attended, WhoDrivesKeepsTheRole) {
  open();
  takes = false;
  come.ring();
  const WorkPtr never = group.start([](std::thread::id) { return false; });
  std::vector<uint64_t> all, others;
  const auto interrupt = [&] {
    all.push_back(polls);
    others.push_back(others_polls);
    return all.size() < 3 ? Status() : Status(StatusCode::Aborted, "enough");
  };
  Work* const works[] = {never.get()};
  EXPECT_EQ(progress->wait(works, kLongMs, interrupt).message(), "enough");
  EXPECT_GT(all.back() - all.front(), 100u);
  EXPECT_LE(others.back() - others.front(), 10u) << "a few, where the waiter was interrupted";
  progress->remove(group);
}

TEST_F(Attended, AWaiterGetsTheRoleFromTheAttendant) {
  open();
  takes = false;
  come.ring();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(sees_polls(20));
    const WorkPtr work = group.start(in_this);
    progress->notify({.caller_waits = true});
    Work* const works[] = {work.get()};
    EXPECT_TRUE(progress->wait(works, kLongMs, {}).ok());
  }
  EXPECT_GT(others_polls, 0u);
}

TEST_F(Attended, WhatIsStartedEndsThoughNobodyWaits) {
  open();
  for (int i = 0; i < 40; ++i) {
    if (i == 20) {
      takes = false;
      come.ring();
    }
    std::promise<void> done;
    group.start(in_another, [&](const Status&) { done.set_value(); });
    progress->notify({});
    auto ended = done.get_future();
    ASSERT_EQ(ended.wait_for(std::chrono::milliseconds(kLongMs)), std::future_status::ready) << i;
  }
}

TEST_F(Attended, ACallbackThatBlocksDoesNotKeepWhatComesWaiting) {
  open();
  // From the second turn on there is another thread, which sleeps until then.
  for (int i = 0; i < 5; ++i) {
    std::promise<bool> taken;
    group.start(in_another, [&](const Status&) { taken.set_value(takes_what_comes()); });
    progress->notify({});
    ASSERT_TRUE(taken.get_future().get()) << i;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST_F(Attended, StopsWhileSomethingComes) {
  open();
  takes = false;
  come.ring();
  ASSERT_TRUE(sees_polls(100));
  progress.reset();
  const uint64_t at_the_end = polls.load();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(polls, at_the_end);
}

// What the thread does between two wake-ups, in this thread.
struct AttentionTest : Attended {
  AttentionTest() {
    takes = false;
    open();
    progress.reset();
    come.ring();
  }
  DriverRole role{WakeFd::create().take()};
  Attention attention{WakeFd::create().take(), transports, role};
  Patience patience;
};

TEST_F(AttentionTest, IsLeftToWhoeverHasTheRole) {
  role.take();
  for (const int next_ms : {2, 4, 4, 4}) {
    EXPECT_EQ(attention.sleep(patience), Attention::End::Theirs);
    EXPECT_EQ(patience.ms(), next_ms);
  }
  role.free(kNothingLeft);
  EXPECT_EQ(attention.sleep(patience), Attention::End::Nobodys);
  EXPECT_EQ(patience.ms(), 1);
}

TEST_F(AttentionTest, IsLeftToWhoeverDrives) {
  std::atomic<bool> stop{false};
  std::thread drives([&] {
    while (!stop) {
      role.take();
      role.free(kNothingLeft);
    }
  });
  const Deadline deadline = Deadline::after_ms(clock, kLongMs);
  // Where the machine is busy the other thread may not have run for a millisecond.
  while (attention.sleep(patience) != Attention::End::Theirs && !deadline.passed(clock)) {
  }
  EXPECT_EQ(patience.ms(), 2);
  stop = true;
  drives.join();
}

TEST_F(AttentionTest, WhoDrivesAloneNeedNotWait) {
  role.take();
  EXPECT_TRUE(patience.is_due(role.turns()));
  patience.note_own(role.turns());
  EXPECT_FALSE(patience.is_due(role.turns()));
  role.free(kNothingLeft);
  patience.note(true);
  EXPECT_EQ(attention.sleep(patience), Attention::End::Nobodys);
  EXPECT_EQ(patience.ms(), 2) << "it did not wait";
  role.take();
  EXPECT_TRUE(patience.is_due(role.turns()));
}

// The linker's thread sends what it answers, and leaves the next request to others.
TEST_F(AttentionTest, WhoDrivesInPassingIsNotWaitedFor) {
  role.take();
  patience.note_own(role.turns());
  EXPECT_FALSE(role.try_take_in_passing()) << "another has it";
  role.free(kNothingLeft);
  EXPECT_TRUE(role.try_take_in_passing());
  EXPECT_FALSE(role.try_take());
  role.free(kNothingLeft);
  EXPECT_FALSE(patience.is_due(role.turns()));
}

TEST_F(AttentionTest, IsWokenOnceByWhatWasSaidBefore) {
  come.drain();
  attention.wake();
  attention.wake();
  EXPECT_EQ(attention.sleep(patience), Attention::End::Woken);
  come.ring();
  EXPECT_EQ(attention.sleep(patience), Attention::End::Nobodys);
}

// A group of ranks that had met before was not made: what its set-up said stayed in a transport
// that a waiter looks at in every eighth round, and set-up drives one round at a time.
TEST(PolledTransports, ARoundThatIsAskedForLooksAtAllWhateverWasDrivenBefore) {
  SteadyClock clock;
  const WakeFd come = WakeFd::create().take();
  FakeTransport cheap{"cheap", "address"}, asks{"asks", "address"};
  asks.ask_for_attention(come.get());
  std::atomic<int> polls{0};
  asks.on_poll = [&] { ++polls; };
  Transports transports{{&cheap, &asks}, {"host", "host"}, Config{}, clock};
  for (const char* name : {"cheap", "asks"}) {
    FakeTransport its_transport{name, "its address"};
    Transports its{{&its_transport}, {name, "its host"}, Config{}, clock};
    const Deadline deadline = Deadline::after_ms(clock, kLongMs);
    ASSERT_TRUE(connect_one(transports, its.local_address(), deadline, clock).ok());
  }
  const auto progress = ThreadProgress::open(transports, clock, 0).take();
  OneWork group;
  progress->add(group);
  for (int rounds = 1; rounds <= 10; ++rounds) {
    int left = rounds;
    const WorkPtr work = group.start([&](std::thread::id) { return --left == 0; });
    Work* const waited = work.get();
    ASSERT_TRUE(progress->wait({&waited, 1}, kLongMs, {}).ok());
    const int before = polls;
    progress->notify({});
    EXPECT_GT(polls, before) << rounds;
  }
  progress->remove(group);
}

}  // namespace
}  // namespace rdmacoll::attention_test
