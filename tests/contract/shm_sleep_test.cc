// shm: sleeping, waking, and noticing the end of a peer.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "tests/contract/cluster.h"
#include "tests/contract/shm_pair.h"

namespace rdmacoll::shm_sleep_test {
namespace {

constexpr int kLongMs = 20'000;

TEST(ShmSleep, ASleeperWakesOnASignal) {
  ShmPair pair;
  const int fd = pair.transport[0]->arm();
  EXPECT_FALSE(readable(fd, 0));
  pair.signal(1, 1);
  EXPECT_TRUE(readable(fd, kLongMs));
  pair.transport[0]->disarm();
  EXPECT_FALSE(readable(fd, 0));
}

TEST(ShmSleep, ASleeperWakesOnASignalToItself) {
  ShmPair pair;
  ShmTransport& mine = *pair.transport[0];
  const Deadline deadline = Deadline::after_ms(pair.clock, kLongMs);
  const PeerId self = mine.connect(mine.info().address, deadline).value();
  ASSERT_TRUE(mine.offer_region(self, pair.region[0].id, kNoNote).ok());
  ASSERT_TRUE(mine.open_region(self, pair.region[0].key, deadline).ok());
  const int fd = mine.arm();
  mine.signal(self, 0, {pair.region[0].id, 0, kLineBytes}, 1, Header());
  EXPECT_TRUE(readable(fd, kLongMs));
}

TEST(ShmSleep, WhoIsAwakeIsNotRung) {
  ShmPair pair;
  pair.signal(1, 1);
  EXPECT_FALSE(readable(pair.transport[0]->arm(), 0));
}

TEST(ShmSleep, ASleeperWakesWhenAPeerLeaves) {
  ShmPair pair;
  const int fd = pair.transport[0]->arm();
  pair.transport[1].reset();
  EXPECT_TRUE(readable(fd, kLongMs));
  pair.transport[0]->disarm();
  EXPECT_EQ(pair.transport[0]->peer_status(pair.peer[0]).code(), StatusCode::PeerFailed);
  // Seen once, it keeps nobody awake.
  EXPECT_FALSE(readable(pair.transport[0]->arm(), 0));
}

// Signal and arm() at the same moment, over and over: either the sleeper sees the signal, or the
// signaller sees the sleeper. Each has just read what the other is about to write, so that without
// the full fences it would look at its old copy while its own store is still on the way.
TEST(ShmSleep, ASignalThatMeetsASleeperHalfWayIsNotLost) {
  constexpr uint64_t kRounds = 20'000;
  ShmPair pair;
  std::atomic<uint64_t> begun{0};
  std::atomic<uint64_t> ready{0};
  std::atomic<uint64_t> ended{0};
  const auto reach = [](const std::atomic<uint64_t>& mark, uint64_t round) {
    for (int spins = 0; mark.load(std::memory_order_acquire) < round; ++spins) {
      if (spins > 10'000) std::this_thread::yield();
    }
  };
  const auto dawdle = [](uint64_t steps) {
    for (uint64_t i = 0; i < steps; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  };
  std::thread signaller([&] {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      reach(begun, round);
      pair.signal(1, round, 1);  // reads the sleeper's flag
      ready.store(round, std::memory_order_release);
      dawdle(round * 7 % 1500);
      pair.signal(1, round, 0);
      ended.store(round, std::memory_order_release);
    }
  });
  uint64_t lost = 0;
  for (uint64_t round = 1; round <= kRounds; ++round) {
    begun.store(round, std::memory_order_release);
    reach(ready, round);
    EXPECT_LE(pair.counter(0), round);  // reads the counter
    const int fd = pair.transport[0]->arm();
    const bool seen = pair.counter(0) >= round;
    reach(ended, round);
    if (!seen && !readable(fd, 0)) ++lost;
    pair.transport[0]->disarm();
  }
  signaller.join();
  EXPECT_EQ(lost, 0u);
}

// The same with real sleep: each side sleeps before every answer.
TEST(ShmSleep, TwoSleepersWakeEachOther) {
  constexpr uint64_t kRounds = 1000;
  ShmPair pair;
  const auto play = [&](int me) {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      if (me == 0) pair.signal(0, round);
      while (pair.counter(me) < round) {
        const int fd = pair.transport[me]->arm();
        const bool woken = pair.counter(me) >= round || readable(fd, kLongMs);
        pair.transport[me]->disarm();
        ASSERT_TRUE(woken) << "round " << round;
      }
      if (me == 1) pair.signal(1, round);
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
}

// A forked process with a transport, met by one of this process; killed by the test.
class ShmDeath : public ::testing::Test {
 protected:
  // `child` runs in the process after the meeting, which never returns from it.
  template <typename InChild>
  void fork_and_meet(InChild in_child) {
    child_ = ::fork();
    if (child_ == 0) {
      ::alarm(60);  // outlives no test
      const auto theirs = open_shm(clock_);
      meet(*theirs, 1);
      in_child();
      for (;;) ::pause();
    }
    mine_ = open_shm(clock_);
    peer_ = meet(*mine_, 0);
  }
  PeerId meet(ShmTransport& transport, int me) {
    board_.publish(0, me, transport.info().address);
    while (!board_.published(0, 1 - me)) ::usleep(200);
    Result<PeerId> peer =
        transport.connect(board_.read(0, 1 - me), Deadline::after_ms(clock_, kLongMs));
    RDMACOLL_CHECK(peer.ok());
    return peer.value();
  }
  void kill_child() {
    ::kill(child_, SIGKILL);
    ASSERT_EQ(::waitpid(child_, nullptr, 0), child_);
  }
  void expect_ended() {
    const Status status = mine_->peer_status(peer_);
    EXPECT_EQ(status.code(), StatusCode::PeerFailed);
    for (const std::string& word : {std::to_string(child_), std::string("ended")}) {
      EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
    }
    EXPECT_TRUE(mine_->fence(peer_, {0}).ok());
  }

  const SteadyClock clock_;
  Board board_;
  pid_t child_ = -1;
  std::unique_ptr<ShmTransport> mine_;
  PeerId peer_ = 0;
};

TEST_F(ShmDeath, ADriverThatSpinsSeesAKilledPeer) {
  fork_and_meet([] {});
  EXPECT_EQ(mine_->fence(peer_, {0}).code(), StatusCode::Unsupported);
  kill_child();
  const Deadline deadline = Deadline::after_ms(clock_, kLongMs);
  while (mine_->peer_status(peer_).ok() && !deadline.passed(clock_)) mine_->poll();
  expect_ended();
}

TEST_F(ShmDeath, ASleeperSeesAKilledPeer) {
  fork_and_meet([] {});
  const int fd = mine_->arm();
  EXPECT_FALSE(readable(fd, 20));
  kill_child();
  EXPECT_TRUE(readable(fd, kLongMs));
  mine_->disarm();
  expect_ended();
}

// Such as a DataLoader's worker: it inherits the sockets and outlives its parent.
TEST_F(ShmDeath, AKilledPeerIsSeenEvenIfItsChildHoldsTheSocket) {
  fork_and_meet([&] {
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      for (;;) ::pause();
    }
    board_.publish(1, 1, std::to_string(grandchild));
  });
  while (!board_.published(1, 1)) ::usleep(200);
  const int fd = mine_->arm();
  kill_child();
  EXPECT_TRUE(readable(fd, kLongMs));
  mine_->disarm();
  expect_ended();
  ::kill(std::stoi(board_.read(1, 1)), SIGKILL);
}

}  // namespace
}  // namespace rdmacoll::shm_sleep_test
