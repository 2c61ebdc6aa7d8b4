// The engine on the simulated network: random scripts, worlds, algorithms and schedules, each from
// one seed (seeds.h). All operations must end, and with the right values.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>

#include "tests/sim/play.h"
#include "tests/sim/seeds.h"

namespace rdmacoll::collectives_sim_test {
namespace {

constexpr int kOperations = 6;
constexpr int kOperationsOfMany = 2;     // kManyRanks and more
constexpr uint64_t kSeedsPerMany = 200;  // they take as long as so many others

struct Totals {
  uint64_t rounds = 0, puts = 0, placed = 0, pieces = 0, signals = 0, again = 0, refused = 0;

  void add(SimWorld& world) {
    const SimCounts& counts = world.network().counts();
    rounds += world.rounds();
    puts += counts.puts;
    placed += counts.to_parts;
    pieces += counts.pieces;
    signals += counts.signals;
    again += counts.signals_again;
    refused += counts.refused;
  }
};

constexpr const char* kAlgorithms[] = {"auto",     "ring",    "tree", "halving_doubling",
                                       "one_shot", "two_shot"};

// Mostly small, where most bugs are and a seed is cheap; now and then many ranks, which map nothing
// here, since each mapping is a copy.
SimOptions random_options(std::mt19937_64& random) {
  SimOptions options;
  options.world = 1 + static_cast<int>(random() % 9);
  options.mapped = random() % 2 == 0;
  options.full_probability = random() % 3 == 0 ? 0.3 : 0.02;
  if (random() % 100 == 0) {
    options.world = 10 + static_cast<int>(random() % 55);
    options.mapped = false;
  }
  return options;
}

void run_script(uint64_t seed, std::mt19937_64& random, const SimOptions& options,
                const char* algorithm, int operations, Totals* totals) {
  Config config = small_heaps();
  config.algorithm = algorithm;
  SCOPED_TRACE("world " + std::to_string(options.world) +
               (options.mapped ? ", mapped, " : ", unmapped, ") + config.algorithm);

  SimWorld world(seed, options, config);
  if (options.world >= kManyRanks) world.set_timeouts_ms(kHourMs);  // no matter of a second
  Script script(random, world.heaps(), operations);
  play(world, script, random, [&] {
    for (uint64_t steps = random() % 200; steps > 0; --steps) world.step();
  });
  totals->add(world);
}

void run_of_few(uint64_t seed, Totals* totals) {
  std::mt19937_64 random(seed);
  const SimOptions options = random_options(random);
  const char* algorithm = kAlgorithms[random() % std::size(kAlgorithms)];
  run_script(seed, random, options, algorithm, kOperations, totals);
}

void run_of_many(uint64_t seed, Totals* totals) {
  std::mt19937_64 random(seed);
  SimOptions options;
  options.world = kManyRanks + static_cast<int>(random() % 200);
  options.mapped = false;
  const char* algorithm = random() % 4 == 0 ? "direct" : kAlgorithms[random() % 5];
  run_script(seed, random, options, algorithm, kOperationsOfMany, totals);
}

TEST(Simulation, HundredsOfRanksEndWithTheRightValues) {
  Totals totals;
  uint64_t ran = 0;
  for_each_seed(1, [&](uint64_t seed) {
    if (seed % kSeedsPerMany != 1 && !replays_one_seed()) return;
    run_of_many(seed, &totals);
    ++ran;
  });
  std::printf("scripts: %" PRIu64 " worlds of hundreds, %" PRIu64 " rounds\n", ran, totals.rounds);
}

TEST(Simulation, RandomScriptsEndWithTheRightValues) {
  Totals totals;
  const uint64_t ran = for_each_seed(60, [&](uint64_t seed) { run_of_few(seed, &totals); });
  if (ran >= kEnoughToCount) {
    EXPECT_GT(totals.placed, ran) << "too little is placed to prove anything";
  }
  std::printf("scripts: %" PRIu64 " seeds, %" PRIu64 " rounds, %" PRIu64 " puts, %" PRIu64
              " placed, %" PRIu64 " pieces, %" PRIu64 " signals, %" PRIu64 " again, %" PRIu64
              " refused\n",
              ran, totals.rounds, totals.puts, totals.placed, totals.pieces, totals.signals,
              totals.again, totals.refused);
}

}  // namespace
}  // namespace rdmacoll::collectives_sim_test
