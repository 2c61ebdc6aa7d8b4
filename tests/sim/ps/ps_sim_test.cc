// Pushes and pulls while servers are lost: whatever is acknowledged is there, exactly once, and
// nobody waits for ever.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <functional>
#include <optional>
#include <utility>

#include "csrc/ps/table/share.h"
#include "tests/sim/ps/program.h"
#include "tests/sim/ps/ps_world.h"
#include "tests/sim/seeds.h"

namespace rdmacoll::ps::ps_sim_test {
namespace {

constexpr uint64_t kSeeds = 60;
constexpr uint64_t kMostSteps = 3'000'000;  // of a world: ten times as many as it takes
constexpr uint64_t kFewer = 8;
constexpr uint32_t kLosses = 3;  // of servers, one after the other

// Of servers' memory, in all worlds: shards, and extents in which rows are looked for.
uint64_t reads = 0;
uint64_t mapped = 0;

// disturb: is asked before each step.
void play(
    uint64_t seed, const PsWorld::Plan& plan, const std::function<void(PsWorld&)>& disturb,
    const std::function<bool()>& goes_on = [] { return false; }) {
  Audit audit;
  uint32_t running = plan.workers;
  PsWorld world(plan, seed);
  for (uint32_t i = 0; i < plan.workers; ++i) {
    world.add_worker([&](Client& client, uint32_t) {
      Program program(world, audit, client);
      program.run(goes_on);
      --running;
    });
  }
  for (const TableKind kind : {TableKind::Dense, TableKind::Rows}) {
    world.add_worker([&, kind](Client& client, uint32_t) {
      Program program(world, audit, client);
      program.watch(kind, [&] { return running > 0; });
    });
  }
  while (running > 0 && world.steps() < kMostSteps && !testing::Test::HasFailure()) {
    disturb(world);
    world.step();
  }
  ASSERT_EQ(running, 0u) << "a worker waits for ever";
  for (auto& [place, sums] : audit.all()) EXPECT_EQ(sums.asked, sums.acknowledged);
  world.add_worker([&](Client& client, uint32_t) {
    Program program(world, audit, client);
    program.create();
    program.pull_all();
  });
  ASSERT_TRUE(world.run(2 * kMostSteps)) << "a worker waits for ever";
  reads += world.reads();
  mapped += world.mapped();
}

// Of one that is lost there is none.
bool has_share(const BucketMap& map, ServerId server, uint32_t replicas) {
  const Share share = share_of(map, server, replicas > 1, [](ServerId) { return true; });
  return share.offers.empty() && share.hand_over.empty();
}

// run: of a seed; how many servers were lost.
void for_all(const std::function<uint32_t(uint64_t)>& run, bool loses) {
  uint64_t losses = 0;
  const uint64_t read_before = reads;
  const uint64_t mapped_before = mapped;
  const uint64_t ran = for_each_seed(kSeeds, [&](uint64_t seed) { losses += run(seed); });
  std::printf("servers: %" PRIu64 " seeds, %" PRIu64 " losses, %" PRIu64 " reads, %" PRIu64
              " looks at rows\n",
              ran, losses, reads - read_before, mapped - mapped_before);
  if (ran < kEnoughToCount) return;
  EXPECT_TRUE(!loses || losses > 0);
  EXPECT_GT(reads, read_before);
  EXPECT_GT(mapped, mapped_before);
}

TEST(ParameterServer, AddsUpWhatIsPushed) {
  for_all(
      [](uint64_t seed) {
        play(seed, {.servers = 1 + static_cast<uint32_t>(seed % 4)}, [](PsWorld&) {});
        return 0;
      },
      false);
}

// One server is lost, some time.
uint32_t lose_one(uint64_t seed, const std::function<void(PsWorld&)>& lose) {
  uint32_t losses = 0;
  play(seed, {.servers = 2 + static_cast<uint32_t>(seed % 3)}, [&](PsWorld& world) {
    if (losses > 0 || world.steps() < 200 || world.draw(400) != 0) return;
    ++losses;
    lose(world);
  });
  return losses;
}

TEST(ParameterServer, LosesNothingWithOneServer) {
  for_all([](uint64_t seed) { return lose_one(seed, [](PsWorld& world) { world.kill(0); }); },
          true);
}

TEST(ParameterServer, ReadsNothingOldOfAServerThatIsCutOff) {
  for_all([](uint64_t seed) { return lose_one(seed, [](PsWorld& world) { world.cut_off(0); }); },
          true);
}

// Of two servers that do not hear of each other one gives way, or both find another backup; later
// one more link is lost, of those that have begun anew.
TEST(ParameterServer, LosesNothingWhereServersDoNotHearOfEachOther) {
  for_all(
      [](uint64_t seed) {
        constexpr uint32_t kServers = 4;
        uint32_t losses = 0;
        const auto disturb = [&](PsWorld& world) {
          if (losses == 2 || world.steps() < 200 || world.draw(600) != 0) return;
          ++losses;
          world.cut_link(0, static_cast<ServerId>(losses));
        };
        play(seed, {.servers = kServers}, disturb, [&] { return losses < 2; });
        return losses;
      },
      true);
}

// Primaries and backups change places all the time, and one that has handed buckets over is lost.
TEST(ParameterServer, LosesNothingWhereBucketsAreHandedOver) {
  for_all(
      [](uint64_t seed) {
        const uint32_t servers = 2 + static_cast<uint32_t>(seed % 3);
        uint32_t losses = 0;
        ServerId last = 0;  // that was told to
        const uint64_t most_tick_ns = seed % 2 == 0 ? 4'000'000 : 200'000;
        play(seed, {.servers = servers, .most_tick_ns = most_tick_ns}, [&](PsWorld& world) {
          if (world.draw(200) == 0) {
            last = static_cast<ServerId>(world.draw(servers));
            world.hand_over(last, 3);
          }
          if (losses > 0 || world.steps() < 200 || world.draw(800) != 0) return;
          ++losses;
          if (world.draw(2) == 0) {
            world.kill(last);
          } else {
            world.cut_off(last);
          }
        });
        return losses;
      },
      true);
}

// Who still takes it for the primary, and hears of nothing else, sees nothing of it any more. Its
// successor waits for no lease, and drops it when it is cut off.
TEST(ParameterServer, ReadsNothingOldOfAServerThatHasHandedOver) {
  for_all(
      [](uint64_t seed) {
        const uint32_t servers = 2 + static_cast<uint32_t>(seed % 3);
        bool hands_over = false;
        uint32_t losses = 0;
        play(seed, {.servers = servers, .most_tick_ns = 200'000}, [&](PsWorld& world) {
          if (losses > 0 || world.steps() < 200 || world.draw(200) != 0) return;
          if (!std::exchange(hands_over, true)) return world.hand_over(0, 1);
          ++losses;
          world.cut_off(0);
        });
        return losses;
      },
      true);
}

// Servers come while the job runs, and get their share; others are lost then, or meanwhile.
TEST(ParameterServer, LosesNothingWhereServersJoin) {
  for_all(
      [](uint64_t seed) -> uint32_t {
        if (seed % kFewer != 0 && !replays_one_seed()) return 0;
        const uint64_t which = seed / kFewer;
        const uint32_t servers = 1 + static_cast<uint32_t>(which % 3);
        const uint32_t replicas = which % 4 == 3 ? 1 : 2;
        std::optional<ServerId> joined;
        uint32_t losses = 0;
        bool has_its_share = false;
        const auto disturb = [&](PsWorld& world) {
          if (world.steps() < 200 || world.draw(300) != 0) return;
          if (!joined) {
            joined = world.join();
            return;
          }
          has_its_share |= has_share(world.map(), *joined, replicas);
          if (!has_its_share && which % 2 == 0) return;
          if (losses > 0 || replicas == 1 || !world.is_whole() || world.draw(6) != 0) return;
          ++losses;
          world.kill(static_cast<ServerId>(world.draw(servers + 1)));
          has_its_share = true;  // or it had it, before others had to take over
        };
        play(seed, {.servers = servers, .replicas = replicas}, disturb,
             [&] { return !joined || !has_its_share || (replicas > 1 && losses == 0); });
        return losses;
      },
      true);
}

// A server does nothing for a while, and goes on as if nothing had been.
TEST(ParameterServer, LosesNothingWithAServerThatIsStopped) {
  for_all(
      [](uint64_t seed) -> uint32_t {
        if (seed % kFewer != 0 && !replays_one_seed()) return 0;
        std::optional<ServerId> stopped;
        uint32_t losses = 0;
        const auto disturb = [&](PsWorld& world) {
          if (world.steps() < 200 || world.draw(3000) != 0) return;
          if (stopped) {
            world.go_on(*std::exchange(stopped, std::nullopt));
          } else if (losses < kLosses && world.is_whole()) {
            ++losses;
            stopped = static_cast<ServerId>(world.draw(3));
            world.stop(*stopped);
          }
        };
        play(seed, {.servers = 3}, disturb, [&] { return losses < kLosses || stopped; });
        return losses;
      },
      true);
}

// Each after all is kept twice again. It takes longer than the others.
TEST(ParameterServer, LosesNothingWithOneServerAfterAnother) {
  for_all(
      [](uint64_t seed) -> uint32_t {
        if (seed % kFewer != 0 && !replays_one_seed()) return 0;
        const uint32_t servers = 2 + static_cast<uint32_t>(seed / kFewer % 3);
        std::optional<ServerId> ended;
        uint32_t losses = 0;
        const auto disturb = [&](PsWorld& world) {
          if (world.steps() < 200 || world.draw(300) != 0) return;
          if (ended) {
            if (servers > 2 && world.draw(2) == 0) return;
            world.restart(*std::exchange(ended, std::nullopt));
          } else if (losses < kLosses && world.is_whole()) {
            ++losses;
            ended = static_cast<ServerId>(world.draw(servers));
            world.kill(*ended);
          }
        };
        play(seed, {.servers = servers}, disturb, [&] { return losses < kLosses; });
        return losses;
      },
      true);
}

}  // namespace
}  // namespace rdmacoll::ps::ps_sim_test
