// verbs: whatever happens to a connection, a port or a device, peer_status() says so after a
// bounded number of polls, names it, and nothing hangs or leaks.
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "csrc/transport/verbs/connection/address.h"
#include "tests/contract/says.h"
#include "tests/contract/verbs_pair.h"

namespace rdmacoll::verbs_failure_test {
namespace {

// Polls one side, as if a second went by now and then, until it misses its peer.
bool misses_its_peer(VerbsPair& pair, int rank) {
  for (int second = 0; second < 10; ++second) {
    for (int i = 0; i < 300; ++i) {
      pair.at(rank).poll();
      if (!pair.status(rank).ok()) return true;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    pair.clock.push_ms(1'000);
  }
  return false;
}

TEST(VerbsFailure, AKilledPeerIsMissedThoughNothingIsSentToIt) {
  VerbsPair pair;
  pair.network.kill("fake1");
  EXPECT_TRUE(misses_its_peer(pair, 0));
  EXPECT_EQ(pair.status(0).code(), StatusCode::PeerFailed);
  EXPECT_TRUE(says(pair.status(0), "IBV_WC_RETRY_EXC_ERR")) << pair.status(0).message();
}

// Nothing that was sent comes to an end, as Soft-RoCE was seen to do.
TEST(VerbsFailure, ADeviceThatStandsStillEndsThePeer) {
  VerbsPair pair;
  pair.network.stand_still("fake0");
  EXPECT_EQ(pair.signal(0, 1), Posted::Done);
  int64_t seconds = 0;
  while (pair.status(0).ok() && seconds < 60) {
    for (int i = 0; i < 300; ++i) pair.at(0).poll();  // it looks at the clock now and then
    pair.clock.push_ms(1'000);
    ++seconds;
  }
  EXPECT_EQ(pair.status(0).code(), StatusCode::PeerFailed);
  EXPECT_TRUE(says(pair.status(0), "stands still")) << pair.status(0).message();
  EXPECT_GT(seconds, 15);
}

TEST(VerbsFailure, AKilledPeerIsMissedInTheMiddleOfTheTraffic) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    VerbsPair pair({.seed = seed, .queue_pairs = 1 + static_cast<int64_t>(seed % 3)});
    uint64_t sent = 0;
    Ticket ticket;
    for (uint64_t i = 0; i < 100 + seed; ++i) {
      pair.put(0, 2'000, 4096, 8192, &ticket);
      if (pair.signal(0, sent + 1) != Posted::Full) ++sent;
      pair.poll();
    }
    pair.network.kill("fake1");
    EXPECT_TRUE(misses_its_peer(pair, 0));
    // Posting to it is harmless from now on, and everything is done.
    EXPECT_NE(pair.put(0, 2'000, 4096, 8192, &ticket), Posted::Full);
    EXPECT_TRUE(ticket.done());
    EXPECT_NE(pair.signal(0, sent + 1), Posted::Full);
    EXPECT_TRUE(pair.at(0).fence(pair.peer[0], Deadline::after_ms(pair.clock, 1'000)).ok());
  }
}

TEST(VerbsFailure, APeerThatLeavesIsMissedAndWhatItSentIsGood) {
  VerbsPair pair;
  for (uint64_t i = 1; i <= 100; ++i) ASSERT_EQ(pair.signal(1, i), Posted::Done);
  std::thread leaver([&] { pair.transport[1].reset(); });
  // No time is pushed on: it leaves at last whether all has come or not.
  for (int i = 0; i < 100'000 && pair.status(0).ok(); ++i) {
    pair.at(0).poll();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  leaver.join();
  EXPECT_EQ(pair.counter(0), 100u);
  EXPECT_TRUE(says(pair.status(0), "left")) << pair.status(0).message();
}

// With a receive queue that is full at the peer, and nobody who polls there.
TEST(VerbsFailure, LeavingWaitsForNobodyForEver) {
  VerbsPair pair;
  uint64_t sent = 0;
  while (pair.signal(0, sent + 1) != Posted::Full) ++sent;
  std::thread time([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pair.clock.push_ms(60'000);
  });
  pair.transport[0].reset();
  time.join();
  EXPECT_TRUE(misses_its_peer(pair, 1));
}

TEST(VerbsFailure, EveryStatusOfACompletionEndsThePeerByName) {
  const std::pair<ibv_wc_status, const char*> statuses[] = {
      {IBV_WC_LOC_LEN_ERR, "IBV_WC_LOC_LEN_ERR"},
      {IBV_WC_LOC_QP_OP_ERR, "IBV_WC_LOC_QP_OP_ERR"},
      {IBV_WC_LOC_PROT_ERR, "IBV_WC_LOC_PROT_ERR"},
      {IBV_WC_WR_FLUSH_ERR, "IBV_WC_WR_FLUSH_ERR"},
      {IBV_WC_BAD_RESP_ERR, "IBV_WC_BAD_RESP_ERR"},
      {IBV_WC_LOC_ACCESS_ERR, "IBV_WC_LOC_ACCESS_ERR"},
      {IBV_WC_REM_INV_REQ_ERR, "IBV_WC_REM_INV_REQ_ERR"},
      {IBV_WC_REM_ACCESS_ERR, "IBV_WC_REM_ACCESS_ERR"},
      {IBV_WC_REM_OP_ERR, "IBV_WC_REM_OP_ERR"},
      {IBV_WC_RETRY_EXC_ERR, "IBV_WC_RETRY_EXC_ERR"},
      {IBV_WC_RNR_RETRY_EXC_ERR, "IBV_WC_RNR_RETRY_EXC_ERR"},
      {IBV_WC_REM_ABORT_ERR, "IBV_WC_REM_ABORT_ERR"},
      {IBV_WC_FATAL_ERR, "IBV_WC_FATAL_ERR"},
      {IBV_WC_RESP_TIMEOUT_ERR, "IBV_WC_RESP_TIMEOUT_ERR"},
      {IBV_WC_GENERAL_ERR, "IBV_WC_GENERAL_ERR"},
  };
  for (const auto& [status, name] : statuses) {
    VerbsPair pair;
    pair.network.fail_next_message("fake0", status);
    EXPECT_NE(pair.signal(0, 1), Posted::Full);
    EXPECT_TRUE(misses_its_peer(pair, 0));
    EXPECT_TRUE(says(pair.status(0), name)) << pair.status(0).message();
    EXPECT_TRUE(says(pair.status(0), "fake0")) << pair.status(0).message();
    EXPECT_TRUE(misses_its_peer(pair, 1));
    EXPECT_EQ(pair.counter(1), 0u);
  }
}

TEST(VerbsFailure, AKeyThatDoesNotFitIsRefused) {
  VerbsPair pair({.region_bytes = 8192});
  auto key = verbs::parse_region_key(pair.region[1].key).take();
  key.region = 7;  // one of the peer's that is not open yet
  key.rkey += 1;
  const Deadline deadline = Deadline::after_ms(pair.clock, 1'000);
  ASSERT_TRUE(pair.at(0).open_region(pair.peer[0], encode(key), deadline).ok());
  Ticket ticket;
  ASSERT_EQ(pair.at(0).put(pair.peer[0], 0, {pair.region[0].base, 64, 0}, {7, 0, 64}, &ticket),
            Posted::Pending);
  EXPECT_TRUE(misses_its_peer(pair, 0));
  EXPECT_TRUE(says(pair.status(0), "IBV_WC_REM_ACCESS_ERR")) << pair.status(0).message();
  EXPECT_TRUE(ticket.done());
  EXPECT_TRUE(misses_its_peer(pair, 1));
}

TEST(VerbsFailure, ACallThatFailsEndsThePeer) {
  VerbsPair pair;
  pair.network.refuse_sends("fake0", EFAULT);
  EXPECT_NE(pair.signal(0, 1), Posted::Full);
  EXPECT_TRUE(misses_its_peer(pair, 0));
  EXPECT_TRUE(says(pair.status(0), std::strerror(EFAULT))) << pair.status(0).message();
  EXPECT_TRUE(misses_its_peer(pair, 1));
}

TEST(VerbsFailure, APortThatStaysDownEndsBothSides) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    VerbsPair pair({.seed = seed});
    pair.network.set_port("fake1", IBV_PORT_DOWN);
    EXPECT_TRUE(misses_its_peer(pair, 0));
    EXPECT_TRUE(misses_its_peer(pair, 1));
    EXPECT_TRUE(says(pair.status(1), "IBV_EVENT_PORT_ERR")) << pair.status(1).message();
  }
}

TEST(VerbsFailure, AnEndedDeviceEndsAllPeersAndLaterMeetings) {
  VerbsPair pair;
  const PeerId self =
      pair.at(0).connect(pair.at(0).info().address, Deadline::after_ms(pair.clock, 20'000)).value();
  pair.network.report("fake0", IBV_EVENT_DEVICE_FATAL);
  EXPECT_TRUE(pair.until([&] { return !pair.status(0).ok(); }));
  EXPECT_TRUE(says(pair.status(0), "IBV_EVENT_DEVICE_FATAL")) << pair.status(0).message();
  EXPECT_FALSE(pair.at(0).peer_status(self).ok());
}

// After it nothing that the peer issued before lands.
TEST(VerbsFailure, AFenceIsAnEnd) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    VerbsPair pair({.seed = seed, .queue_pairs = 2, .region_bytes = 1 << 20});
    std::memset(pair.region[0].base, 1, pair.region[0].bytes);
    Ticket ticket;
    for (int i = 0; i < 20; ++i) pair.put(0, 200'000, 300'000, 300'000, &ticket);
    pair.signal(0, 1);
    pair.at(0).poll();
    std::this_thread::sleep_for(std::chrono::microseconds(100 * seed));
    EXPECT_TRUE(pair.at(1).fence(pair.peer[1], Deadline::after_ms(pair.clock, 1'000)).ok());
    EXPECT_EQ(pair.status(1).code(), StatusCode::PeerFailed);
    std::memset(pair.region[1].base, 0, pair.region[1].bytes);
    EXPECT_TRUE(misses_its_peer(pair, 0)) << seed;
    for (uint64_t i = 0; i < pair.region[1].bytes; ++i) {
      ASSERT_EQ(pair.region[1].base[i], std::byte{0});
    }
  }
}

}  // namespace
}  // namespace rdmacoll::verbs_failure_test
