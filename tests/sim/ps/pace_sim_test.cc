// Workers that go in step while servers are lost and workers start again: what a worker pulls after
// a step has in it what the mode promises. Gradients are integers and the rate is 1, so a table is
// minus the sum of them, bit for bit; a gradient depends on rank and step alone, so that a worker
// that starts again pushes the same.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "tests/sim/ps/ps_world.h"
#include "tests/sim/seeds.h"

namespace rdmacoll::ps::pace_sim_test {
namespace {

constexpr uint64_t kSeeds = 40;
constexpr uint64_t kMostSteps = 3'000'000;  // of a world: ten times as many as it takes
constexpr int64_t kLimitMs = 1'000'000'000;
constexpr uint32_t kTable = 1;
constexpr uint64_t kElements = 5;
constexpr uint64_t kPushed = 4;  // the last one stays
constexpr uint32_t kWorkers = 3;
constexpr uint32_t kLeastSteps = 12;
// Of servers, one after the other: what a new backup was told shows when it is a primary.
constexpr uint32_t kLosses = 2;
constexpr uint64_t kFewer = 8;

struct Mode {
  bool is_sync = false;
  uint32_t staleness = 0;
};

int64_t gradient_of(uint32_t rank, uint32_t step) {
  return int64_t{kWorkers} * (1 + (rank * 7 + step * 3) % 5);  // the mean is an integer, too
}
int64_t sum_of(uint32_t rank, uint32_t steps) {
  int64_t sum = 0;
  for (uint32_t step = 1; step <= steps; ++step) sum += gradient_of(rank, step);
  return sum;
}

// All workers of a table, whatever becomes of them.
class Walk {
 public:
  // goes_on: whether workers make more steps than the least; once they need not they never need.
  Walk(PsWorld& world, Mode mode, std::function<bool()> goes_on)
      : world_(world), mode_(mode), goes_on_(std::move(goes_on)) {
    for (uint32_t rank = 0; rank < kWorkers; ++rank) start(rank);
  }
  bool has_ended() const { return ended_ == kWorkers; }
  // Workers that have ended on the way begin again.
  void restart_workers() {
    for (const uint32_t rank : std::exchange(gone_, {})) start(rank);
  }
  uint64_t restarts() const { return restarts_; }

 private:
  Limit limit() const { return {Deadline::after_ms(world_.clock(), kLimitMs), {}}; }
  void good(const Status& status) const { ASSERT_TRUE(status.ok()) << status.message(); }

  void start(uint32_t rank) {
    world_.add_worker([this, rank](Client& client, uint32_t) { run(client, rank); });
  }
  void run(Client& client, uint32_t rank) {
    const Optimizer descends{.kind = OptimizerKind::Sgd, .lr = 1};
    TableSpec spec{.name = "paced", .elements = kElements, .optimizer = descends};
    spec.pace = Pace{kWorkers, kPushed, mode_.is_sync};
    good(client.create(kTable, spec));
    auto reached = client.pull_steps(kTable, limit());
    good(reached.status());
    if (testing::Test::HasFailure()) return;
    for (uint32_t step = reached.value()[rank] + 1; is_to_make(step); ++step) {
      if (world_.draw(15) == 0) {  // it ends before, or while it pushes
        if (world_.draw(2) == 0) push(client, rank, step);
        gone_.push_back(rank);
        ++restarts_;
        return;
      }
      const BatchPtr pushed = push(client, rank, step);
      const bool waits = world_.draw(2) == 0;
      if (waits) good(client.wait(pushed, limit()));
      pull(client, rank, step, waits ? step : step - 1);
      good(client.wait(pushed, limit()));
      if (testing::Test::HasFailure()) return;
    }
    pull(client, rank, last_, last_);
    ++ended_;
  }
  // All workers end with the same one.
  bool is_to_make(uint32_t step) {
    if (goes_on_()) last_ = std::max(last_, step);
    return step <= last_;
  }
  BatchPtr push(Client& client, uint32_t rank, uint32_t step) {
    const std::vector<float> values(kPushed, static_cast<float>(gradient_of(rank, step)));
    asked_[rank] = std::max(asked_[rank], step);
    return client.push_range(kTable, 0, values, PushAs::Gradient, limit(), {rank, step});
  }
  // acknowledged: its own last step that is.
  void pull(Client& client, uint32_t rank, uint32_t step, uint32_t acknowledged) {
    const uint32_t must = mode_.is_sync ? step : step - std::min(step, mode_.staleness);
    std::vector<float> values(kElements);
    good(client.wait(client.pull_range(kTable, 0, values, limit(), must), limit()));
    int64_t least = 0, most = 0;
    for (uint32_t other = 0; other < kWorkers; ++other) {
      const uint32_t there = mode_.is_sync || other != rank ? must : std::max(must, acknowledged);
      least += sum_of(other, there);
      most += sum_of(other, mode_.is_sync ? must : asked_[other]);
    }
    const int64_t divisor = mode_.is_sync ? kWorkers : 1;
    for (uint64_t i = 0; i < kPushed; ++i) {
      const auto sum = static_cast<int64_t>(-values[i]);
      ASSERT_GE(sum, least / divisor) << "rank " << rank << " has not step " << must << " of all";
      ASSERT_LE(sum, most / divisor) << "a step of somebody counts twice, or came too soon";
    }
    EXPECT_EQ(values[kPushed], 0);
  }

  PsWorld& world_;
  const Mode mode_;
  const std::function<bool()> goes_on_;
  uint32_t last_ = kLeastSteps;
  std::array<uint32_t, kWorkers> asked_{};
  std::vector<uint32_t> gone_;
  uint32_t ended_ = 0;
  uint64_t restarts_ = 0;
};

// Servers are lost one after the other, each after all is kept twice again.
void keeps_pace(Mode mode, bool loses_servers) {
  uint64_t losses = 0, restarts = 0;
  const uint64_t ran = for_each_seed(kSeeds, [&](uint64_t seed) {
    if (loses_servers && seed % kFewer != 0 && !replays_one_seed()) return;
    const uint32_t servers = 2 + static_cast<uint32_t>(seed / kFewer % 2);
    PsWorld world({.servers = servers, .workers = kWorkers}, seed);
    uint32_t lost = 0;
    Walk walk(world, mode, [&] { return loses_servers && lost < kLosses; });
    std::optional<ServerId> ended;
    while (!walk.has_ended() && world.steps() < kMostSteps && !testing::Test::HasFailure()) {
      walk.restart_workers();
      const bool disturbs = loses_servers && world.draw(250) == 0;
      if (disturbs && ended) {
        world.restart(*std::exchange(ended, std::nullopt));
      } else if (disturbs && world.is_whole()) {
        ++lost;
        ended = static_cast<ServerId>(world.draw(servers));
        world.kill(*ended);
      }
      world.step();
    }
    ASSERT_TRUE(walk.has_ended()) << "a worker waits for ever";
    losses += lost;
    restarts += walk.restarts();
  });
  std::printf("paces: %" PRIu64 " seeds, %" PRIu64 " losses, %" PRIu64 " restarts\n", ran, losses,
              restarts);
  EXPECT_TRUE(!loses_servers || ran < 10 || (losses > 0 && restarts > 0));
}

TEST(ParameterServer, StepsOnceForAllWorkers) { keeps_pace({.is_sync = true}, false); }

TEST(ParameterServer, StepsOnceForAllWorkersWhateverServersAreLost) {
  keeps_pace({.is_sync = true}, true);
}

TEST(ParameterServer, IsNoStalerThanItMayBeWhateverServersAreLost) {
  keeps_pace({.staleness = 2}, true);
}

}  // namespace
}  // namespace rdmacoll::ps::pace_sim_test
