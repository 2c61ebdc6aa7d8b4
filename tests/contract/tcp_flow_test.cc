// tcp: what moves. Puts of all sizes over all streams, gets beyond what may be under way, both at
// once in both directions, a peer that reads nothing, and when the transport wants to be driven.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/contract/contract.h"
#include "tests/contract/stream.h"
#include "tests/contract/tcp_pair.h"
#include "tests/contract/tcp_rogue.h"

namespace rdmacoll::tcp_flow_test {
namespace {

constexpr uint64_t kStripeBytes = 256 * 1024;  // datapath.cc

void fill(std::byte* at, uint64_t bytes, uint64_t seed) {
  std::minstd_rand random(static_cast<unsigned>(seed + 1));
  for (uint64_t i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(random());
}

class TcpStreams : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(, TcpStreams, ::testing::Values(1, 2, 3, 8),
                         [](const auto& info) { return std::to_string(info.param); });

TEST_P(TcpStreams, PutsOfAllSizesComeWhole) {
  const auto streams = static_cast<uint64_t>(GetParam());
  constexpr uint64_t kGuard = 64, kSource = 2 << 20, kPlace = kLineBytes + kGuard;
  TcpPair pair({.streams = GetParam(), .region_bytes = 2 * kSource});
  const uint64_t sizes[] = {0,
                            1,
                            2,
                            31,
                            32,
                            33,
                            63,
                            64,
                            65,
                            4'095,
                            4'096,
                            4'097,
                            8'159,
                            8'160,
                            8'161,
                            8'192,
                            65'536,
                            kStripeBytes - 1,
                            kStripeBytes,
                            kStripeBytes + 1,
                            kStripeBytes + streams,
                            4'096 * 8 * streams - 1,
                            4'096 * 8 * streams + 1,
                            1'000'003,
                            (1 << 20) + 4'096 * streams + 1};
  uint64_t sent = 0;
  for (const uint64_t bytes : sizes) {
    for (int from = 0; from < 2; ++from) {
      std::byte* const source = pair.region[from].base + kSource;
      std::byte* const place = pair.region[1 - from].base + kPlace;
      fill(source, bytes, bytes);
      std::memset(place - kGuard, 0xEE, bytes + 2 * kGuard);
      Ticket ticket;
      const Posted posted = pair.put(from, bytes, kSource, kPlace, &ticket);
      EXPECT_EQ(posted, bytes == 0 ? Posted::Done : Posted::Pending);
      ASSERT_EQ(pair.signal(from, sent + 1), Posted::Done);
      ASSERT_TRUE(pair.until([&] { return pair.counter(1 - from) == sent + 1; })) << bytes;
      EXPECT_EQ(std::memcmp(place, source, bytes), 0) << bytes;
      for (uint64_t i = 0; i < kGuard; ++i) {
        ASSERT_EQ(place[i - kGuard], std::byte{0xEE}) << bytes;
        ASSERT_EQ(place[bytes + i], std::byte{0xEE}) << bytes;
      }
      EXPECT_TRUE(ticket.done());
    }
    ++sent;
  }
}

// The stream of the contract, with puts so large that they go over all streams.
TEST_P(TcpStreams, StripesKeepThePromise) {
  const auto run = [](const Kind& kind, int world, uint64_t seed, const Body& body) {
    run_threads(kind, world, seed, body,
                [](int, const Clock& clock) -> Result<std::unique_ptr<Transport>> {
                  auto opened = TcpTransport::open(tcp_on_loopback({.streams = GetParam()}), clock,
                                                   ThisProcess::make().take());
                  if (!opened.ok()) return opened.status();
                  return std::unique_ptr<Transport>(opened.take());
                });
  };
  constexpr Kind kStriped{.name = "TcpStriped", .run = run, .any_order = true};
  const StreamLayout layout{.slot_bytes = 900'032, .channels = 2};
  run(kStriped, 2, 1, [&](Member& member) { return stream_everywhere(member, layout, 60); });
}

// Small and large puts, signals and gets as they come, in both directions, polled as it comes.
TEST_P(TcpStreams, ThousandsOfRequestsInAnyMix) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    constexpr uint64_t kBytes = 4 << 20, kHalf = kBytes / 2;
    TcpPair pair({.streams = GetParam(), .region_bytes = kBytes});
    std::minstd_rand random(seed);
    uint64_t sent[2] = {};
    Ticket put[2], get[2];
    for (int i = 0; i < 3'000; ++i) {
      const int from = static_cast<int>(random() % 2);
      const uint64_t bytes = random() % 8 == 0 ? 70'000 + random() % 500'000 : random() % 2'000;
      switch (random() % 4) {
        case 0:
          pair.put(from, bytes, kHalf, 4'096, &put[from]);
          break;
        case 1:
          pair.get(from, bytes, kHalf, kHalf + kHalf / 2, &get[from]);
          break;
        case 2:
          if (pair.signal(from, sent[from] + 1) != Posted::Full) ++sent[from];
          break;
        default:
          pair.at(from).poll();
      }
    }
    EXPECT_TRUE(pair.until([&] {
      return pair.counter(0) == sent[1] && pair.counter(1) == sent[0] && put[0].done() &&
             put[1].done() && get[0].done() && get[1].done();
    }));
    EXPECT_TRUE(pair.status(0).ok() && pair.status(1).ok());
  }
}

// --- gets ----------------------------------------------------------------------------------------

TEST(TcpFlow, GetsBeyondTheLimitWaitAndAllAreRight) {
  constexpr uint64_t kEach = 1'000, kGets = 500;
  TcpPair pair({.region_bytes = kEach * kGets});
  fill(pair.region[1].base, kEach * kGets, 5);
  std::vector<Ticket> tickets(kGets);
  uint64_t posted = 0;
  while (pair.get(0, kEach, posted * kEach, posted * kEach, &tickets[posted]) != Posted::Full) {
    ++posted;
  }
  EXPECT_EQ(posted, tcp::kMostGets) << "none has to wait for poll()";
  EXPECT_TRUE(pair.until([&] {
    if (posted < kGets &&
        pair.get(0, kEach, posted * kEach, posted * kEach, &tickets[posted]) != Posted::Full) {
      ++posted;
    }
    return posted == kGets && tickets.back().done();
  }));
  EXPECT_EQ(std::memcmp(pair.region[0].base, pair.region[1].base, kEach * kGets), 0);
}

// One call for many, and none later than the answer to the one before.
TEST(TcpFlow, AGetBehindOthersWaitsForPollAndOneAloneForNothing) {
  TcpPair pair;
  pair.settle();
  const auto owner = [&] { pair.at(1).poll(); };
  Ticket first, second;
  ASSERT_EQ(pair.get(0, 8, 0, 128, &first), Posted::Pending);
  ASSERT_EQ(pair.get(0, 8, 8, 136, &second), Posted::Pending);
  const int comes = pair.at(0).info().attention_fd;
  ASSERT_TRUE(tcp_until(owner, [&] { return is_readable(comes); })) << "the first has left";
  for (int i = 0; i < 100; ++i) pair.at(1).poll();
  pair.at(0).poll();
  EXPECT_TRUE(first.done());
  EXPECT_FALSE(second.done()) << "it left in this poll";
  ASSERT_TRUE(tcp_until(owner, [&] { return is_readable(comes); })) << "it has left";
  pair.at(0).poll();
  EXPECT_TRUE(second.done());
}

// A lock, say, is waited for.
TEST(TcpFlow, UpdatesAndSignalsTakeWhatWaitsWithThem) {
  TcpPair pair;
  pair.settle();
  const auto owner = [&] { pair.at(1).poll(); };
  const auto* const word = reinterpret_cast<const uint64_t*>(pair.region[1].base + 512);
  Ticket get, update;
  for (uint64_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(pair.get(0, 8, 0, 128, &get), Posted::Pending);
    ASSERT_EQ(pair.at(0).update(pair.peer[0], 0, {0, 512, kWordBytes}, Update::add(1),
                                {pair.region[0].base + 256, kWordBytes, 0}, &update),
              Posted::Pending);
    EXPECT_TRUE(tcp_until(owner, [&] { return *word == i; }));
    ASSERT_EQ(pair.get(0, 8, 0, 128, &get), Posted::Pending);
    ASSERT_EQ(pair.signal(0, i), Posted::Done);
    EXPECT_TRUE(tcp_until(owner, [&] { return pair.counter(1) == i; }));
  }
  EXPECT_TRUE(pair.until([&] { return get.done() && update.done(); }));
}

// Both ask, and both send so much that neither takes anything more. Whoever has to answer must
// never stop reading for it.
TEST(TcpFlow, GetsAreAnsweredWhereBothHaveFilledTheirQueues) {
  constexpr uint64_t kBytes = 1 << 20;
  TcpPair pair({.region_bytes = 4 * kBytes});
  Ticket get[2], put[2];
  for (int i = 0; i < 2; ++i) {
    for (uint32_t k = 0; k < tcp::kMostGets; ++k) {
      ASSERT_EQ(pair.get(i, kBytes, 0, kBytes, &get[i]), Posted::Pending);
    }
    while (pair.put(i, kBytes, 2 * kBytes, 3 * kBytes, &put[i]) != Posted::Full) {
    }
  }
  EXPECT_TRUE(
      pair.until([&] { return get[0].done() && get[1].done() && put[0].done() && put[1].done(); }));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(pair.status(i).ok()) << pair.status(i).message();
}

// --- back-pressure -------------------------------------------------------------------------------

TEST(TcpFlow, APeerThatReadsNothingMakesPutsFullAndHoldsUpNobodyElse) {
  constexpr uint64_t kBytes = 1 << 20;
  TcpPair pair({.region_bytes = 2 * kBytes});
  const auto third = open_tcp(pair.clock);
  const MadeRegion thirds = make_region(*third, 0, 4096).take();
  PeerId id_of_third = 0, id_at_third = 0;
  meet(pair.at(0), *third, &id_of_third, &id_at_third);
  ASSERT_TRUE(third->offer_region(id_at_third, 0, kNoNote).ok());
  ASSERT_TRUE(pair.at(0)
                  .open_region(id_of_third, thirds.key, Deadline::after_ms(pair.clock, 1'000))
                  .status()
                  .ok());
  Ticket ticket;
  const auto poll = [&] { pair.at(0).poll(); };
  EXPECT_TRUE(tcp_until(poll, [&] {
    for (int i = 0; i < 1'000; ++i) {
      pair.at(0).poll();
      if (pair.put(0, kBytes, 0, kBytes, &ticket) != Posted::Full) return false;
    }
    return true;
  }));
  EXPECT_EQ(pair.signal(0, 1), Posted::Full);
  EXPECT_FALSE(ticket.done());
  const auto* line = reinterpret_cast<const Line*>(thirds.base);
  for (uint64_t counter = 1; counter <= 100; ++counter) {
    ASSERT_EQ(pair.at(0).signal(id_of_third, 0, {0, 0, kLineBytes}, counter, Header()),
              Posted::Done);
    ASSERT_TRUE(tcp_until(
        [&] {
          pair.at(0).poll();
          third->poll();
        },
        [&] { return line->counter.load() == counter; }));
  }
  EXPECT_TRUE(pair.until([&] { return ticket.done(); }));
  EXPECT_TRUE(pair.status(0).ok());
}

// --- being driven --------------------------------------------------------------------------------

TEST(TcpFlow, ItWantsToBeDrivenWhileSomethingHasComeAndNoLonger) {
  TcpPair pair;
  pair.settle();
  const int wanted = pair.at(1).info().attention_fd;
  EXPECT_FALSE(is_readable(wanted));
  ASSERT_EQ(pair.signal(0, 1), Posted::Done);
  EXPECT_TRUE(is_readable(wanted, 10'000));
  EXPECT_EQ(pair.counter(1), 0u);
  pair.at(1).poll();
  EXPECT_EQ(pair.counter(1), 1u);
  EXPECT_FALSE(is_readable(wanted));
  EXPECT_FALSE(is_readable(pair.at(0).info().attention_fd));
}

// And while a full socket takes something again.
TEST(TcpFlow, ItWantsToBeDrivenWhenThereIsRoomToSend) {
  constexpr uint64_t kBytes = 1 << 20;
  TcpPair pair({.region_bytes = 2 * kBytes});
  Ticket ticket;
  while (pair.put(0, kBytes, 0, kBytes, &ticket) != Posted::Full) pair.at(0).poll();
  for (int i = 0; i < 100; ++i) pair.at(0).poll();
  EXPECT_FALSE(is_readable(pair.at(0).info().attention_fd));
  EXPECT_TRUE(tcp_until([&] { pair.at(1).poll(); },
                        [&] { return is_readable(pair.at(0).info().attention_fd); }));
}

// Nothing can be done with what follows a mark before the puts have come.
TEST(TcpFlow, ItDoesNotWantToBeDrivenForWhatHasToWait) {
  const TcpOptions options{.streams = 2};
  const SteadyClock clock;
  const auto victim = open_tcp(clock, options);
  const MadeRegion region = make_region(*victim, 0, 4096).take();
  TcpRogue rogue(*victim, options);
  const auto key = tcp::parse_region_key(region.key).take();
  const auto generation = static_cast<uint16_t>(key.generation);
  tcp::MarkBody mark{};
  mark.puts[0] = 1;
  rogue.say({.kind = tcp::FrameKind::Mark},
            std::string(reinterpret_cast<const char*>(&mark), sizeof(mark)));
  for (uint64_t counter = 1; counter <= 1'000; ++counter) {
    tcp::SignalBody body{};
    body.counter = counter;
    rogue.say({.kind = tcp::FrameKind::Signal, .generation = generation, .region = 0},
              std::string(reinterpret_cast<const char*>(&body), tcp::kSignalHeadBytes));
  }
  const int wanted = victim->info().attention_fd;
  ASSERT_TRUE(is_readable(wanted, 10'000));
  for (int i = 0; i < 100; ++i) victim->poll();
  EXPECT_FALSE(is_readable(wanted));
  rogue.say({.kind = tcp::FrameKind::Put, .generation = generation, .region = 0, .offset = 128},
            "put", 1);
  EXPECT_TRUE(is_readable(wanted, 10'000));
  const auto& line = *reinterpret_cast<const Line*>(region.base);
  EXPECT_TRUE(tcp_until([&] { victim->poll(); }, [&] { return line.counter.load() == 1'000; }));
  EXPECT_FALSE(is_readable(wanted));
}

// --- regions -------------------------------------------------------------------------------------

// The owner is told after everything that was done to the region, over whichever streams.
TEST_P(TcpStreams, ARegionThatIsClosedBehindPutsIsFreeAfterThem) {
  constexpr uint64_t kBytes = 1 << 20;
  TcpPair pair({.streams = GetParam(), .region_bytes = kBytes});
  for (RegionId round = 1; round <= 20; ++round) {
    const auto memory = std::make_shared<SharedSegment>(SharedSegment::create(kBytes).take());
    auto key = pair.at(1).register_region(round, RegionMemory::all_of(memory));
    ASSERT_TRUE(key.status().ok());
    ASSERT_TRUE(pair.at(1).offer_region(pair.peer[1], round, kNoNote).ok());
    ASSERT_TRUE(pair.open(0, key.value()).ok());
    Ticket ticket;
    std::memset(pair.region[0].base, static_cast<int>(round), kBytes);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(pair.at(0).put(pair.peer[0], 0, {pair.region[0].base, kBytes, 0},
                               {round, 0, kBytes}, &ticket),
                Posted::Pending);
    }
    pair.at(0).close_region(pair.peer[0], round);
    pair.at(1).release_region(round, Release::Keep);
    EXPECT_FALSE(pair.at(1).is_reusable(round));
    ASSERT_TRUE(pair.until([&] { return pair.at(1).is_reusable(round); }));
    EXPECT_TRUE(ticket.done());
    EXPECT_EQ(std::memcmp(memory->data(), pair.region[0].base, kBytes), 0);
    EXPECT_TRUE(pair.status(0).ok()) << pair.status(0).message();
    EXPECT_TRUE(pair.status(1).ok()) << pair.status(1).message();
  }
}

}  // namespace
}  // namespace rdmacoll::tcp_flow_test
