// verbs: back-pressure and striping. The emulated device counts places in its queues as strictly as
// the hardest one, and counts receivers that were not ready; VerbsPair expects none.
#include <cstring>

#include "csrc/transport/verbs/device/limits.h"
#include "tests/contract/contract.h"
#include "tests/contract/stream.h"
#include "tests/contract/verbs_pair.h"

namespace rdmacoll::verbs_flow_test {
namespace {

TEST(VerbsFlow, AReceiverThatSleepsFillsTheWindowAndNoMore) {
  VerbsPair pair;
  uint64_t sent = 0;
  for (int i = 0; i < 3'000; ++i) {
    if (pair.signal(0, sent + 1) != Posted::Full) ++sent;
    pair.at(0).poll();
  }
  EXPECT_EQ(sent, verbs::kReceiveDepth);
  EXPECT_EQ(pair.counter(1), 0u);
  // It wakes, and says nothing but that there is room.
  constexpr uint64_t kSignals = 5'000;
  ASSERT_TRUE(pair.until([&] {
    if (sent < kSignals && pair.signal(0, sent + 1) != Posted::Full) ++sent;
    return pair.counter(1) == kSignals;
  }));
}

TEST(VerbsFlow, BothSleepAndBothWake) {
  VerbsPair pair;
  constexpr uint64_t kSignals = 3'000;
  uint64_t sent[2] = {};
  const auto send_all = [&] {
    for (int from = 0; from < 2; ++from) {
      while (sent[from] < kSignals && pair.signal(from, sent[from] + 1) != Posted::Full) {
        ++sent[from];
      }
    }
  };
  send_all();
  EXPECT_EQ(sent[0], verbs::kReceiveDepth);
  ASSERT_TRUE(pair.until([&] {
    send_all();
    return pair.counter(0) == kSignals && pair.counter(1) == kSignals;
  }));
}

TEST(VerbsFlow, PutsStopWhenTheSendQueueIsFull) {
  for (const int64_t queue_pairs : {1, 4}) {
    VerbsPair pair({.queue_pairs = queue_pairs, .region_bytes = 1 << 20});
    Ticket ticket;
    uint64_t puts = 0;
    while (pair.put(0, 64, 4096, 8192, &ticket) != Posted::Full) ++puts;
    EXPECT_EQ(puts, verbs::kSendDepth);
    // A signal needs a place, too, and all of them are given back without help from the receiver.
    EXPECT_EQ(pair.signal(0, 1), Posted::Full);
    const SteadyClock steady;
    const Deadline deadline = Deadline::after_ms(steady, 20'000);
    while (!ticket.done() && !deadline.passed(steady)) pair.at(0).poll();
    EXPECT_TRUE(ticket.done());
    EXPECT_NE(pair.signal(0, 1), Posted::Full);
    EXPECT_TRUE(pair.until([&] { return pair.counter(1) == 1; }));
  }
}

// Small and large puts, signals and reads as they come, in both directions, without any order of
// polls; the queues must never overflow and nothing may be lost.
TEST(VerbsFlow, ThousandsOfRequestsInAnyMix) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    constexpr uint64_t kBytes = 4 << 20;
    VerbsPair pair({.seed = seed, .queue_pairs = seed % 2 == 0 ? 3 : 1, .region_bytes = kBytes});
    std::minstd_rand random(static_cast<unsigned>(seed));
    uint64_t sent[2] = {};
    Ticket last[2];
    for (int i = 0; i < 6'000; ++i) {
      const int from = static_cast<int>(random() % 2);
      const uint64_t bytes = random() % 8 == 0 ? 70'000 + random() % 200'000 : random() % 2'000;
      const uint64_t half = kBytes / 2;
      switch (random() % 4) {
        case 0:
          pair.put(from, bytes, half, 4096, &last[from]);
          break;
        case 1:
          pair.at(from).get(pair.peer[from], 0, {pair.region[1 - from].id, half, bytes},
                            {pair.region[from].base + half + half / 2, bytes, pair.region[from].id},
                            &last[from]);
          break;
        case 2:
          if (pair.signal(from, sent[from] + 1) != Posted::Full) ++sent[from];
          break;
        default:
          pair.at(from).poll();
      }
    }
    EXPECT_TRUE(pair.until([&] {
      return pair.counter(0) == sent[1] && pair.counter(1) == sent[0] && last[0].done() &&
             last[1].done();
    }));
    EXPECT_TRUE(pair.status(0).ok() && pair.status(1).ok());
  }
}

// The stream of the contract, with puts so large that they go over all queue pairs.
void run_striped(const Kind& kind, int world, uint64_t seed, const Body& body) {
  fake::FakeNetwork network(two_devices(seed));
  run_threads(kind, world, seed, body,
              [](int rank, const Clock& clock) -> Result<std::unique_ptr<Transport>> {
                Config config = on_device(rank % 2);
                config.settings.set("RDMACOLL_IB_QPS", "4");
                auto opened = VerbsTransport::open(fake::FakeNetwork::table(), config, clock,
                                                   ThisProcess::make().take());
                if (!opened.ok()) return opened.status();
                return std::unique_ptr<Transport>(opened.take());
              });
  EXPECT_EQ(network.counts().receivers_not_ready, 0u);
  EXPECT_EQ(network.leaks(), "");
}

TEST(VerbsFlow, StripesKeepThePromise) {
  constexpr Kind kStriped{.name = "VerbsStriped", .run = run_striped, .seeds = 6, .messages = 60};
  const StreamLayout layout{.slot_bytes = 400'000, .channels = 2};
  for (uint64_t seed = 1; seed <= kStriped.seeds && !HasFailure(); ++seed) {
    kStriped.run(kStriped, 2, seed, [&](Member& member) {
      return stream_everywhere(member, layout, kStriped.messages);
    });
  }
}

}  // namespace
}  // namespace rdmacoll::verbs_flow_test
