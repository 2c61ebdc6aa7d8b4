// sim: that it really is as hostile as it says, and repeatable. A simulation that is too kind
// proves nothing about the code above it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "csrc/transport/sim/network.h"
#include "tests/contract/make_region.h"

namespace rdmacoll::sim_transport_test {
namespace {

constexpr uint64_t kData = 1024;  // where data lie in a region, behind the lines
constexpr uint64_t kBytes = 512;

// Two ranks; rank 0 has opened the region of rank 1 and the other way round.
struct SimPair {
  explicit SimPair(uint64_t seed, SimOptions options = SimOptions()) : network(seed, options) {
    for (int i = 0; i < 2; ++i) region[i] = make_region(network.transport(i), 0, 4096).take();
    for (int i = 0; i < 2; ++i) {
      SimTransport& mine = network.transport(i);
      peer[i] = mine.connect(network.transport(1 - i).info().address, never).value();
      Result<Region> opened = mine.open_region(peer[i], region[1 - i].key, never);
      EXPECT_TRUE(opened.ok()) << opened.status().message();
      view[i] = opened.value().base;
    }
  }
  static SimOptions quiet() {
    SimOptions options;
    options.full_probability = 0;
    options.again_probability = 0;
    options.at_once_probability = 0;
    return options;
  }
  static SimOptions mapped() {
    SimOptions options = quiet();
    options.mapped = true;
    return options;
  }

  // A source of rank 0: one of four places of its region.
  std::byte* filled(int value, uint64_t place = 0) {
    std::byte* source = region[0].base + kData + place * kBytes;
    std::memset(source, value, kBytes);
    return source;
  }
  Posted put(uint8_t channel, std::byte* source, Ticket* ticket, uint64_t at = kData) {
    return network.transport(0).put(peer[0], channel, {source, kBytes, region[0].id},
                                    {region[1].id, at, kBytes}, ticket);
  }
  // Rank `from` signals line `number` of the other.
  void signal(int from, uint8_t channel, uint64_t number, uint64_t counter) {
    network.transport(from).signal(peer[from], channel,
                                   {region[1 - from].id, number * kLineBytes, kLineBytes}, counter,
                                   Header());
  }
  uint64_t counter(int at, uint64_t number) const {
    return reinterpret_cast<Line*>(region[at].base)[number].counter.load();
  }
  std::byte* data() const { return region[1].base + kData; }
  bool holds(std::byte value) const {
    return std::all_of(data(), data() + kBytes, [&](std::byte byte) { return byte == value; });
  }

  static constexpr Deadline never{0};  // sim does not wait
  SimNetwork network;
  MadeRegion region[2];
  std::byte* view[2] = {};  // the other's region
  PeerId peer[2] = {};
};

// How many of 200 seeds show what `shows` looks for.
template <typename Shows>
int seeds_that(Shows shows) {
  int count = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) count += shows(seed) ? 1 : 0;
  return count;
}

uint64_t trace(uint64_t seed) {
  SimPair pair(seed);
  std::byte* source = pair.filled(1);
  uint64_t hash = 0;
  Ticket ticket;
  for (uint64_t i = 1; i <= 20; ++i) {
    while (pair.put(static_cast<uint8_t>(i % 2), source, &ticket) == Posted::Full) hash += i;
    pair.signal(0, static_cast<uint8_t>(i % 2), i % 4, i);
    pair.network.step();
    hash = hash * 31 + static_cast<uint64_t>(pair.network.clock().now_ns());
    for (uint64_t line = 0; line < 4; ++line) hash = hash * 31 + pair.counter(1, line);
  }
  while (pair.network.step()) {
    hash = hash * 31 + static_cast<uint64_t>(pair.network.clock().now_ns());
    for (uint64_t b = 0; b < kBytes; b += 7)
      hash = hash * 31 + static_cast<uint64_t>(pair.data()[b]);
  }
  return hash;
}

TEST(Sim, OneSeedIsOneRun) {
  EXPECT_EQ(trace(5), trace(5));
  EXPECT_NE(trace(5), trace(6));
}

TEST(Sim, NothingMovesUntilTimeDoes) {
  SimPair pair(1, SimPair::quiet());
  std::byte* source = pair.filled(1);
  Ticket ticket;
  ASSERT_EQ(pair.put(0, source, &ticket), Posted::Pending);
  pair.signal(0, 0, 0, 1);
  EXPECT_TRUE(pair.holds(std::byte{0xDB}));
  EXPECT_EQ(pair.counter(1, 0), 0u);
  EXPECT_FALSE(ticket.done());
  while (pair.network.step()) {
  }
  EXPECT_TRUE(pair.holds(std::byte{1}));
  EXPECT_EQ(pair.counter(1, 0), 1u);
  EXPECT_TRUE(ticket.done());
}

TEST(Sim, APutLandsInPieces) {
  const int torn = seeds_that([](uint64_t seed) {
    SimPair pair(seed, SimPair::quiet());
    std::byte* source = pair.filled(1);
    Ticket ticket;
    pair.put(0, source, &ticket);
    bool seen = false;
    while (pair.network.step()) {
      seen |= !pair.holds(std::byte{1}) && !pair.holds(std::byte{0xDB});
    }
    return seen;
  });
  EXPECT_GT(torn, 100);
}

TEST(Sim, ASourceThatIsReusedTooEarlyArrivesCorrupt) {
  const int corrupt = seeds_that([](uint64_t seed) {
    SimPair pair(seed, SimPair::quiet());
    std::byte* source = pair.filled(1);
    Ticket ticket;
    pair.put(0, source, &ticket);
    pair.network.step();
    pair.filled(2);
    while (pair.network.step()) {
    }
    return !pair.holds(std::byte{1});
  });
  EXPECT_GT(corrupt, 100);
}

TEST(Sim, ChannelsOvertakeEachOtherAndPutsDoNotWaitForOtherChannels) {
  const int second_first = seeds_that([](uint64_t seed) {
    SimPair pair(seed, SimPair::quiet());
    pair.signal(0, 0, 0, 1);
    pair.signal(0, 1, 1, 1);
    while (pair.counter(1, 0) + pair.counter(1, 1) == 0) pair.network.step();
    return pair.counter(1, 0) == 0;
  });
  EXPECT_GT(second_first, 50);
  EXPECT_LT(second_first, 150);

  const int data_late = seeds_that([](uint64_t seed) {
    SimPair pair(seed, SimPair::quiet());
    std::byte* source = pair.filled(1);
    Ticket ticket;
    pair.put(0, source, &ticket);
    pair.signal(0, 1, 0, 1);  // on another channel: promises nothing
    while (pair.counter(1, 0) == 0) pair.network.step();
    return !pair.holds(std::byte{1});
  });
  EXPECT_GT(data_late, 50);
}

TEST(Sim, PostingIsSometimesRefusedAndSourcesSometimesTakenAtOnce) {
  SimPair pair(3);
  std::byte* source = pair.filled(1);
  int count[3] = {};
  for (int i = 0; i < 500; ++i) {
    Ticket ticket;
    ++count[static_cast<int>(pair.put(0, source, &ticket))];
  }
  EXPECT_GT(count[static_cast<int>(Posted::Done)], 50);
  EXPECT_GT(count[static_cast<int>(Posted::Full)], 5);
  EXPECT_EQ(pair.network.counts().refused, static_cast<uint64_t>(count[2]));
}

TEST(Sim, LoadsThroughAMappingAreLateUntilTheOwnerSignals) {
  int late = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SimPair pair(seed, SimPair::mapped());
    const std::byte* view = pair.view[0];
    ASSERT_NE(view, nullptr);
    std::memset(pair.data(), 7, kBytes);
    late += view[kData] != std::byte{7};
    pair.signal(1, 0, 0, 1);
    while (pair.counter(0, 0) == 0) pair.network.step();
    EXPECT_EQ(std::memcmp(view + kData, pair.data(), kBytes), 0) << seed;
  }
  EXPECT_GT(late, 100);
}

TEST(Sim, StoresThroughAMappingReachTheOwnerBeforeTheNextSignalOnAnyChannel) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SimPair pair(seed, SimPair::mapped());
    std::byte* view = pair.view[0];
    for (uint64_t round = 1; round <= 3; ++round) {
      const auto value = static_cast<std::byte>(round);
      std::fill_n(view + kData, kBytes, value);
      EXPECT_FALSE(pair.holds(value));
      pair.signal(0, static_cast<uint8_t>(round), round, round);
      pair.network.step();
      EXPECT_EQ(view[kData], value) << "one's own stores are never lost from sight";
      while (pair.counter(1, round) == 0) pair.network.step();
      EXPECT_TRUE(pair.holds(value)) << seed;
    }
  }
}

TEST(Sim, AKilledRankLosesItsLastWordsAndTheSurvivorHears) {
  int lost = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SimPair pair(seed, SimPair::quiet());
    Ticket ticket;
    for (uint64_t i = 0; i < 4; ++i) {
      pair.put(0, pair.filled(static_cast<int>(i + 1), i), &ticket, kData + i * kBytes);
      pair.signal(0, 0, i, 1);
    }
    pair.network.step();
    pair.network.kill(0);
    while (pair.network.step()) {
    }
    EXPECT_EQ(pair.network.transport(1).peer_status(pair.peer[1]).code(), StatusCode::PeerFailed);
    for (uint64_t i = 0; i < 4; ++i) {
      if (pair.counter(1, i) == 0) {
        ++lost;
        continue;
      }
      for (uint64_t b = 0; b < kBytes; ++b) {  // the promise outlives the rank
        ASSERT_EQ(pair.data()[i * kBytes + b], static_cast<std::byte>(i + 1)) << seed;
      }
    }
  }
  EXPECT_GT(lost, 100);
  EXPECT_LT(lost, 700);
}

TEST(Sim, AfterAFenceNothingLands) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SimPair pair(seed, SimPair::quiet());
    std::byte* source = pair.filled(1);
    Ticket ticket;
    pair.put(0, source, &ticket);
    pair.signal(0, 0, 0, 1);
    pair.network.step();
    ASSERT_TRUE(pair.network.transport(1).fence(pair.peer[1], SimPair::never).ok());
    const std::vector<std::byte> before(pair.region[1].base, pair.region[1].base + 4096);
    while (pair.network.step()) {
    }
    EXPECT_EQ(std::memcmp(before.data(), pair.region[1].base, before.size()), 0);
    EXPECT_TRUE(ticket.done());
    EXPECT_EQ(pair.network.transport(1).peer_status(pair.peer[1]).code(), StatusCode::PeerFailed);
    EXPECT_EQ(pair.network.transport(0).peer_status(pair.peer[0]).code(), StatusCode::PeerFailed);
    pair.put(0, source, &ticket);
    pair.signal(0, 0, 0, 2);
    while (pair.network.step()) {
    }
    EXPECT_EQ(std::memcmp(before.data(), pair.region[1].base, before.size()), 0) << "issued later";
  }
  SimPair pair(1, SimPair::mapped());
  EXPECT_EQ(pair.network.transport(1).fence(pair.peer[1], SimPair::never).code(),
            StatusCode::Unsupported);
}

TEST(Sim, WritesIntoAReleasedRegionAreCounted) {
  SimPair pair(1, SimPair::quiet());
  std::byte* source = pair.filled(1);
  Ticket ticket;
  pair.put(0, source, &ticket);
  pair.network.transport(1).release_region(pair.region[1].id, Release::Keep);
  while (pair.network.step()) {
  }
  EXPECT_GT(pair.network.counts().late_pieces, 0u);
}

TEST(Sim, ASignalMayBeStoredAgainUntilItsLineIsSignalledAnew) {
  SimOptions options = SimPair::quiet();
  options.again_probability = 1;
  SimPair pair(1, options);
  pair.signal(0, 0, 0, 1);
  pair.signal(0, 0, 1, 1);
  while (pair.counter(1, 0) == 0 || pair.counter(1, 1) == 0) pair.network.step();
  reinterpret_cast<Line*>(pair.region[1].base)[1].counter = 0;  // to see it come again
  pair.signal(0, 0, 0, 2);
  while (pair.network.step()) {
  }
  EXPECT_EQ(pair.counter(1, 0), 2u);
  EXPECT_EQ(pair.counter(1, 1), 1u);
  EXPECT_GE(pair.network.counts().signals_again, 2u);
}

TEST(Sim, ASleeperIsWokenBySignalAndDeath) {
  SimPair pair(1, SimPair::quiet());
  SimTransport& sleeper = pair.network.transport(1);
  sleeper.arm();
  EXPECT_FALSE(sleeper.awake());
  pair.signal(0, 0, 0, 1);
  EXPECT_FALSE(sleeper.awake());
  while (pair.network.step()) {
  }
  EXPECT_TRUE(sleeper.awake());
  sleeper.arm();
  pair.network.kill(0);
  pair.network.advance(10'000'000);
  EXPECT_TRUE(sleeper.awake());
}

TEST(Sim, ANetworkInsideHostsReachesNoOtherAndSharesItsTimeWithTheOneBesideIt) {
  SimOptions options = SimPair::mapped();
  options.world = 3;
  options.hosts = {0, 1, 0};
  SimNetwork inside(1, options);
  SimNetwork between(inside, {.world = 3});
  const std::string island = inside.transport(0).info().island;
  EXPECT_NE(island, "");
  EXPECT_EQ(inside.transport(2).info().island, island);
  EXPECT_NE(inside.transport(1).info().island, island);
  EXPECT_EQ(between.transport(0).info().island, "");
  EXPECT_NE(between.transport(0).info().name, inside.transport(0).info().name);
  const auto meets = [](SimNetwork& network, int other) {
    const std::string address = network.transport(other).info().address;
    return network.transport(0).connect(address, SimPair::never);
  };
  EXPECT_EQ(meets(inside, 1).status().code(), StatusCode::Unsupported);
  ASSERT_TRUE(meets(inside, 2).ok());
  Result<PeerId> peer = meets(between, 1);
  ASSERT_TRUE(peer.ok()) << peer.status().message();
  between.kill(1);
  EXPECT_TRUE(between.transport(0).peer_status(peer.value()).ok());
  inside.advance(10'000'000);
  EXPECT_FALSE(between.transport(0).peer_status(peer.value()).ok());
}

TEST(SimDeathTest, ASignalThatDoesNotGrowItsCounterIsABug) {
  SimPair pair(1, SimPair::quiet());
  pair.signal(0, 0, 0, 5);
  EXPECT_DEATH(pair.signal(0, 0, 0, 5), "broken invariant");
}

}  // namespace
}  // namespace rdmacoll::sim_transport_test
