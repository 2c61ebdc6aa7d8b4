// The engine on the simulated network: random scripts, worlds, algorithms and schedules, each from
// one seed. RDMACOLL_SIM_SEED=n replays one; RDMACOLL_SIM_SEEDS=n runs so many.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/sim/script.h"
#include "tests/sim/sim_world.h"

namespace rdmacoll {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

struct Totals {
  uint64_t rounds = 0, puts = 0, landed = 0, pieces = 0, signals = 0, refused = 0;

  void add(SimWorld& world) {
    const SimCounts& counts = world.network().counts();
    rounds += world.rounds();
    puts += counts.puts;
    landed += counts.to_parts;
    pieces += counts.pieces;
    signals += counts.signals;
    refused += counts.refused;
  }
};

constexpr const char* kAlgorithms[] = {"auto",     "ring",    "tree", "halving_doubling",
                                       "one_shot", "two_shot"};

// A heap so small that some of the buffers find no room, and messages so small that most are lent.
Config config_for_sim() {
  Config config;
  config.log_level = LogLevel::Error;
  config.heap_bytes = 32 << 10;
  config.lend_local_bytes = config.lend_remote_bytes = 128;
  return config;
}

void run_script(uint64_t seed, Totals* totals) {
  std::mt19937_64 random(seed);
  SimOptions options;
  options.world = 1 + static_cast<int>(random() % 9);
  options.mapped = random() % 2 == 0;
  options.full_probability = random() % 3 == 0 ? 0.3 : 0.02;
  Config config = config_for_sim();
  config.algorithm = kAlgorithms[random() % std::size(kAlgorithms)];
  SCOPED_TRACE("RDMACOLL_SIM_SEED=" + std::to_string(seed) + ": world " +
               std::to_string(options.world) + (options.mapped ? ", mapped, " : ", unmapped, ") +
               config.algorithm);

  SimWorld world(seed, options, config);
  Script script(random, world.heaps(), 6);
  // Each rank starts its operations when it likes; several may be in flight.
  std::vector<int> next(static_cast<size_t>(options.world));
  std::vector<WorkPtr> works;
  while (std::any_of(next.begin(), next.end(), [&](int n) { return n < script.operations(); })) {
    const int rank = static_cast<int>(random() % static_cast<uint64_t>(options.world));
    int& at = next[static_cast<size_t>(rank)];
    if (at < script.operations()) {
      for (WorkPtr& work : script.start(at++, world.rank(rank))) works.push_back(std::move(work));
    }
    for (uint64_t steps = random() % 200; steps > 0; --steps) world.step();
  }
  ASSERT_TRUE(world.run(works)) << "stuck";
  for (const WorkPtr& work : works) ASSERT_TRUE(work->status().ok()) << work->status().message();
  for (int i = 0; i < script.operations(); ++i) {
    for (int rank = 0; rank < options.world; ++rank) ASSERT_EQ(script.check(i, rank), "");
  }
  totals->add(world);
}

TEST(Simulation, RandomScriptsEndWithTheRightValues) {
  Totals totals;
  const uint64_t one = from_environment("RDMACOLL_SIM_SEED", 0);
  const uint64_t seeds = from_environment("RDMACOLL_SIM_SEEDS", 60);
  uint64_t run = 0;
  for (uint64_t seed = one != 0 ? one : 1; !HasFailure() && run < (one != 0 ? 1 : seeds); ++seed) {
    run_script(seed, &totals);
    ++run;
  }
  if (one == 0) {
    EXPECT_GT(totals.landed, seeds) << "too little lands to prove anything";
  }
  std::printf(
      "%llu seeds: %llu rounds, %llu puts, of which %llu landed, in %llu pieces, %llu "
      "signals, %llu refused\n",
      static_cast<unsigned long long>(run), static_cast<unsigned long long>(totals.rounds),
      static_cast<unsigned long long>(totals.puts), static_cast<unsigned long long>(totals.landed),
      static_cast<unsigned long long>(totals.pieces),
      static_cast<unsigned long long>(totals.signals),
      static_cast<unsigned long long>(totals.refused));
}

// A rank dies at a random moment: everybody else's works end, none hangs.
TEST(Simulation, ADeadRankEndsEveryWork) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    SimOptions options;
    options.world = 2 + static_cast<int>(random() % 5);
    options.mapped = random() % 2 == 0;
    SimWorld world(seed, options, config_for_sim());
    Script script(random, world.heaps(), 6);
    std::vector<WorkPtr> works;
    const int victim = static_cast<int>(random() % static_cast<uint64_t>(options.world));
    for (int i = 0; i < script.operations(); ++i) {
      for (int rank = 0; rank < options.world; ++rank) {
        auto started = script.start(i, world.rank(rank));
        if (rank != victim) works.insert(works.end(), started.begin(), started.end());
      }
    }
    for (uint64_t steps = random() % 3000; steps > 0; --steps) world.step();
    world.kill(victim);
    ASSERT_TRUE(world.run(works)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace rdmacoll
