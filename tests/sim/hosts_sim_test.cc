// The engine on several hosts: ranks of one map each other's memory, others do not. Random layouts,
// scripts, algorithms and schedules, each from one seed (seeds.h). All operations must end, and
// with the right values. Faults on hosts are in faults_sim_test.cc and shrink_sim_test.cc.
#include <cinttypes>
#include <cstdio>

#include "tests/sim/hosts.h"
#include "tests/sim/play.h"
#include "tests/sim/seeds.h"

namespace rdmacoll::hosts_sim_test {
namespace {

constexpr int kOperations = 6;

struct Totals {
  uint64_t ranks = 0, rounds = 0, inside = 0, between = 0, placed = 0;

  void add(SimWorld& world) {
    ranks += static_cast<uint64_t>(world.size());
    rounds += world.rounds();
    inside += world.network().counts().signals;
    between += world.between_hosts().counts().signals;
    placed += world.between_hosts().counts().to_parts;
  }
};

void run_on_hosts(uint64_t seed, Totals* totals) {
  std::mt19937_64 random(seed);
  SimOptions options;
  options.hosts = random_hosts(random);
  options.world = static_cast<int>(options.hosts.size());
  options.full_probability = random() % 3 == 0 ? 0.3 : 0.02;
  const Config config = random_config_on_hosts(random);
  SCOPED_TRACE(text_of(options.hosts) + ", " + config.algorithm);
  SimWorld world(seed, options, config);
  for (int a = 0; a < world.size(); ++a) {
    for (int b = 0; b < world.size(); ++b) {
      const bool same =
          options.hosts[static_cast<size_t>(a)] == options.hosts[static_cast<size_t>(b)];
      ASSERT_EQ(world.rank(a).islands().share(static_cast<uint32_t>(a), static_cast<uint32_t>(b)),
                same);
    }
  }
  Script script(random, world.heaps(), kOperations);
  play(world, script, random, [&] {
    for (uint64_t steps = random() % 200; steps > 0; --steps) world.step();
  });
  totals->add(world);
}

TEST(Hosts, RandomScriptsEndWithTheRightValues) {
  Totals totals;
  const uint64_t ran = for_each_seed(60, [&](uint64_t seed) { run_on_hosts(seed, &totals); });
  if (ran >= kEnoughToCount) {
    EXPECT_GT(totals.inside, ran) << "too little goes on inside hosts to prove anything";
    EXPECT_GT(totals.between, ran) << "too little goes between hosts to prove anything";
    EXPECT_GT(totals.placed, ran) << "too little is placed to prove anything";
  }
  std::printf("scripts on hosts: %" PRIu64 " seeds, %" PRIu64 " ranks, %" PRIu64 " rounds, %" PRIu64
              " signals inside hosts, %" PRIu64 " between, %" PRIu64 " placed\n",
              ran, totals.ranks, totals.rounds, totals.inside, totals.between, totals.placed);
}

}  // namespace
}  // namespace rdmacoll::hosts_sim_test
