// verbs: sleeping on the descriptor of arm(), and waking.
#include <poll.h>

#include <thread>

#include "tests/contract/verbs_pair.h"

namespace rdmacoll::verbs_sleep_test {
namespace {

constexpr int kLongMs = 20'000;

bool readable(int fd, int timeout_ms) {
  pollfd waited{fd, POLLIN, 0};
  return ::poll(&waited, 1, timeout_ms) == 1;
}

// Both are idle: nothing is on its way that would wake somebody.
void settle(VerbsPair& pair) {
  for (int i = 0; i < 200; ++i) pair.poll();
}

// Sleeps as the engine does, until it holds.
template <typename Predicate>
bool sleep_until(VerbsPair& pair, int rank, Predicate holds) {
  for (int i = 0; i < 1'000; ++i) {
    const int fd = pair.at(rank).arm();
    pair.at(rank).poll();
    const bool woken = holds() || readable(fd, kLongMs);
    pair.at(rank).disarm();
    pair.at(rank).poll();
    if (holds()) return true;
    if (!woken) return false;
  }
  return false;
}

TEST(VerbsSleep, ASleeperWakesOnASignal) {
  VerbsPair pair;
  settle(pair);
  const int fd = pair.at(0).arm();
  EXPECT_FALSE(readable(fd, 0));
  pair.signal(1, 1);
  pair.at(1).poll();
  EXPECT_TRUE(readable(fd, kLongMs));
  pair.at(0).disarm();
  EXPECT_FALSE(readable(fd, 0));
  EXPECT_TRUE(pair.until([&] { return pair.counter(0) == 1; }));
}

TEST(VerbsSleep, NoSignalIsSleptThrough) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    VerbsPair pair({.seed = seed});
    constexpr uint64_t kSignals = 300;
    std::thread other([&] {  // answers each signal with one
      for (uint64_t seen = 0; seen < kSignals; ++seen) {
        EXPECT_TRUE(sleep_until(pair, 1, [&] { return pair.counter(1) > seen; }));
        EXPECT_EQ(pair.signal(1, seen + 1), Posted::Done);
      }
    });
    for (uint64_t sent = 0; sent < kSignals; ++sent) {
      EXPECT_EQ(pair.signal(0, sent + 1), Posted::Done);
      EXPECT_TRUE(sleep_until(pair, 0, [&] { return pair.counter(0) > sent; }));
    }
    other.join();
  }
}

TEST(VerbsSleep, ASleeperWakesOnASignalToItself) {
  VerbsPair pair;
  VerbsTransport& mine = pair.at(0);
  const Deadline deadline = Deadline::after_ms(pair.clock, kLongMs);
  const PeerId self = mine.connect(mine.info().address, deadline).value();
  ASSERT_TRUE(mine.offer_region(self, pair.region[0].id, kNoNote).ok());
  ASSERT_TRUE(mine.open_region(self, pair.region[0].key, deadline).ok());
  settle(pair);
  const int fd = mine.arm();
  mine.signal(self, 0, {pair.region[0].id, 0, kLineBytes}, 1, Header());
  EXPECT_TRUE(readable(fd, kLongMs));
  EXPECT_TRUE(pair.until([&] { return pair.counter(0) == 1; }));
}

TEST(VerbsSleep, ASleeperWakesWhenAPeerLeaves) {
  VerbsPair pair;
  settle(pair);
  const int fd = pair.at(0).arm();
  pair.transport[1].reset();
  EXPECT_TRUE(readable(fd, kLongMs));
  pair.at(0).disarm();
  pair.at(0).poll();
  EXPECT_EQ(pair.status(0).code(), StatusCode::PeerFailed);
}

TEST(VerbsSleep, ASleeperWakesWhenItsPutIsDone) {
  VerbsPair pair;
  settle(pair);
  Ticket ticket;
  ASSERT_EQ(pair.put(0, 1000, 4096, 4096, &ticket), Posted::Pending);
  EXPECT_TRUE(sleep_until(pair, 0, [&] { return ticket.done(); }));
}

TEST(VerbsSleep, ASleeperWakesWhenItsDeviceFails) {
  VerbsPair pair;
  settle(pair);
  const int fd = pair.at(0).arm();
  pair.network.report("fake0", IBV_EVENT_DEVICE_FATAL);
  EXPECT_TRUE(readable(fd, kLongMs));
  pair.at(0).disarm();
  pair.at(0).poll();
  EXPECT_FALSE(pair.status(0).ok());
}

}  // namespace
}  // namespace rdmacoll::verbs_sleep_test
