// A group that lives for an hour of virtual time: script after script, ranks that compute for
// seconds between their operations, and nothing but right values: nobody is given up, nothing is
// left in the heaps, no number runs out.
#include <cinttypes>
#include <cstdio>

#include "tests/sim/play.h"
#include "tests/sim/seeds.h"

namespace rdmacoll::soak_sim_test {
namespace {

constexpr uint64_t kSeedsPerHour = 100;  // it takes as long as so many others
constexpr int kOperations = 8;
constexpr int64_t kTenthNs = 100'000'000;
constexpr int64_t kHourNs = kHourMs * 1'000'000;
constexpr int64_t kStallBoundMs = 10'000;

class Hour {
 public:
  explicit Hour(uint64_t seed)
      : random_(seed), world_(patient_world(seed, random_, kStallBoundMs)) {}

  // How many operations it had.
  uint64_t run() {
    const Clock& clock = world_->network().clock();
    const int64_t end_ns = clock.now_ns() + kHourNs;
    uint64_t operations = 0;
    while (clock.now_ns() < end_ns && !testing::Test::HasFailure()) {
      {
        Script script(random_, world_->heaps(), kOperations);
        play(*world_, script, random_, [this] { pause(); });
      }
      for (const Heap* heap : world_->heaps()) EXPECT_EQ(heap->stats().allocated_bytes, 0u);
      operations += kOperations;
    }
    return operations;
  }

 private:
  // Mostly short; now and then seconds, in which all have their turns.
  void pause() {
    for (uint64_t steps = random_() % 100; steps > 0; --steps) world_->step();
    if (random_() % 4 != 0) return;
    for (uint64_t tenths = random_() % 100; tenths > 0; --tenths) {
      for (int i = 0; i < 10; ++i) world_->step();
      world_->network().advance(kTenthNs);
    }
  }

  std::mt19937_64 random_;
  std::unique_ptr<SimWorld> world_;
};

TEST(Simulation, AGroupLivesForAnHour) {
  uint64_t hours = 0, operations = 0;
  for_each_seed(1, [&](uint64_t seed) {
    if (seed % kSeedsPerHour != 1 && !replays_one_seed()) return;
    operations += Hour(seed).run();
    ++hours;
  });
  std::printf("soaks: %" PRIu64 " hours, %" PRIu64 " operations\n", hours, operations);
}

}  // namespace
}  // namespace rdmacoll::soak_sim_test
