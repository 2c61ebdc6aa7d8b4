// Workers that go in step while servers are lost and workers start again: what a worker pulls after
// a step has in it what the mode promises. Gradients and rates are integers, so a table is minus
// the sum of the gradients, each times its rate, bit for bit. They depend on generation, rank and
// step alone, so that a worker that starts again pushes the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <deque>
#include <functional>
#include <optional>
#include <span>
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
constexpr uint64_t kPushed = 4;   // the last one stays
constexpr uint32_t kWorkers = 3;  // at first
constexpr uint32_t kMostWorkers = 4;
constexpr uint32_t kLeastSteps = 12;
// Of servers, one after the other: what a new backup was told shows when it is a primary.
constexpr uint32_t kLosses = 2;
constexpr uint32_t kChanges = 2;  // of the number of workers
constexpr int64_t kLookMs = 50;
constexpr uint64_t kFewer = 8;
constexpr float kNoGradient = 1'000'000;  // what lies where one was lent before

struct Mode {
  bool is_sync = false;
  uint32_t staleness = 0;
};

int64_t gradient_of(WorkerStep step) {  // the mean is an integer, too
  return 12 * (1 + (step.rank * 7 + step.number * 3 + step.generation) % 5);
}

int64_t lr_of(WorkerStep step) { return 1 + (step.rank + step.number) % 3; }

// All workers of a table, whatever becomes of them.
class Walk {
 public:
  // goes_on: whether workers make more steps than the least; once they need not they never need.
  Walk(PsWorld& world, Mode mode, std::function<bool()> goes_on)
      : world_(world), mode_(mode), goes_on_(std::move(goes_on)) {
    change(kWorkers);
  }
  bool has_ended() const { return !is_changing_ && ended_ == generation_.workers; }
  // Workers that have ended on the way begin again; or others do, once all have ended.
  void restart_workers() {
    if (!is_changing_) {
      for (const uint32_t rank : std::exchange(gone_, {})) start(rank);
      return;
    }
    ended_ += static_cast<uint32_t>(std::exchange(gone_, {}).size());
    if (ended_ < generation_.workers || is_begun_) return;
    is_begun_ = true;
    world_.add_worker([this](Client& client, uint32_t) { begin(client); });
  }
  // So many workers go on in the place of those that there are.
  void change(uint32_t workers) {
    if (is_changing_) return;
    is_changing_ = true;
    is_begun_ = false;
    next_workers_ = workers;
    ++changes_;
  }
  uint64_t restarts() const { return restarts_; }
  uint64_t refused() const { return refused_; }
  uint32_t changes() const { return changes_ - 1; }

 private:
  Limit limit() const { return {Deadline::after_ms(world_.clock(), kLimitMs), {}}; }
  void good(const Status& status) const { ASSERT_TRUE(status.ok()) << status.message(); }

  void start(uint32_t rank) {
    world_.add_worker([this, rank](Client& client, uint32_t) { run(client, rank); });
  }
  void create(Client& client) {
    const Optimizer descends{.kind = OptimizerKind::Sgd, .lr = 1};
    TableSpec spec{.name = "paced", .elements = kElements, .optimizer = descends};
    spec.pace = Pace{kPushed, mode_.is_sync};
    good(client.create(kTable, spec));
  }
  std::vector<uint32_t> reached(Client& client, uint32_t workers) {
    auto reached = client.pull_steps(kTable, workers, limit());
    good(reached.status());
    return reached.ok() ? reached.take() : std::vector<uint32_t>(workers);
  }
  // Of what all before have pushed nothing more comes then.
  void begin(Client& client) {
    create(client);
    const uint32_t before = generation_.workers;
    const std::vector<uint32_t> made = reached(client, kMostWorkers);
    const uint32_t base = before == 0 ? 0 : 1 + std::ranges::max(made);
    const Generation next{generation_.number + 1, next_workers_};
    good(client.wait(client.begin_generation(kTable, next, base, limit()), limit()));
    const std::vector<uint32_t> all = reached(client, next.workers);
    if (testing::Test::HasFailure()) return;
    EXPECT_EQ(std::ranges::min(all), std::ranges::max(all));
    EXPECT_TRUE(mode_.is_sync || all[0] == base);
    std::vector<float> values(kElements);
    good(client.wait(client.pull_range(kTable, 0, values, limit()), limit()));
    check_sum(values[0], all[0], mode_.is_sync ? all[0] : 0, {});
    begin_sum_ = static_cast<int64_t>(-values[0]);
    base_ = all[0];
    asked_.fill(base_);
    generation_ = next;
    last_ = std::max(last_, base_);
    ended_ = 0;
    is_changing_ = false;
    for (uint32_t rank = 0; rank < next.workers; ++rank) gone_.push_back(rank);
  }
  // Not ok: others go on.
  Status wait(Client& client, const BatchPtr& batch) const {
    Status status(StatusCode::Timeout, "");
    while (status.code() == StatusCode::Timeout && !is_changing_) {
      status = client.wait(batch, {Deadline::after_ms(world_.clock(), kLookMs), {}});
    }
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::Timeout) << status.message();
    return status;
  }
  void run(Client& client, uint32_t rank) {
    create(client);
    const std::vector<uint32_t> made = reached(client, generation_.workers);
    if (testing::Test::HasFailure()) return;
    bool is_whole = true;
    for (uint32_t step = made[rank] + 1; is_whole && !is_changing_ && is_to_make(step); ++step) {
      if (world_.draw(15) == 0) {  // it ends before, or while it pushes
        if (world_.draw(2) == 0) push(client, rank, step);
        gone_.push_back(rank);
        ++restarts_;
        return;
      }
      is_whole = make(client, rank, step);
      if (testing::Test::HasFailure()) return;
    }
    if (is_whole && !is_changing_) pull(client, rank, last_, last_);
    ++ended_;
    if (is_changing_ && world_.draw(2) == 0) come_late(client, rank);
  }
  // Once others go on, with a step that these are to make: it has no part in it.
  void come_late(Client& client, uint32_t rank) {
    const uint32_t of = generation_.number;
    while (generation_.number == of) {
      if (!client.pull_steps(kTable, 1, limit()).ok()) return;
    }
    const std::vector<float> values(kPushed, 1200);
    const BatchPtr pushed =
        client.push_range(kTable, 0, values, PushAs::Gradient, limit(), {rank, base_ + 1, of});
    const Status status = client.wait(pushed, limit());
    if (status.code() == StatusCode::Interrupted) return;  // the world has ended
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << status.message();
    ++refused_;
  }
  bool make(Client& client, uint32_t rank, uint32_t step) {
    const BatchPtr pushed = push(client, rank, step);
    const bool waits = world_.draw(2) == 0;
    if (waits && !wait(client, pushed).ok()) return false;
    const bool is_whole =
        pull(client, rank, step, waits ? step : step - 1) && wait(client, pushed).ok();
    if (is_whole) std::ranges::fill(world_.lent(client), kNoGradient);
    return is_whole;
  }
  // All workers end with the same one.
  bool is_to_make(uint32_t step) {
    if (goes_on_()) last_ = std::max(last_, step);
    return step <= last_;
  }
  BatchPtr push(Client& client, uint32_t rank, uint32_t step) {
    const WorkerStep of_worker{rank, step, generation_.number};
    std::vector<float> sent(kPushed);
    const bool is_lent = world_.draw(2) == 0;  // what was lent for the step before is done
    const auto values = is_lent ? std::span(world_.lent(client)).first(kPushed) : std::span(sent);
    std::ranges::fill(values, static_cast<float>(gradient_of(of_worker)));
    asked_[rank] = std::max(asked_[rank], step);
    return client.push_range(kTable, 0, values, PushAs::Gradient, limit(), of_worker,
                             {.lr = static_cast<double>(lr_of(of_worker))});
  }
  // acknowledged: its own last step that is. False: others go on.
  bool pull(Client& client, uint32_t rank, uint32_t step, uint32_t acknowledged) {
    const uint32_t must = mode_.is_sync ? step : step - std::min(step, mode_.staleness);
    std::vector<float>& values = pulled_.emplace_back(kElements);
    if (!wait(client, client.pull_range(kTable, 0, values, limit(), must)).ok()) return false;
    for (uint64_t i = 0; i < kPushed; ++i) {
      check_sum(values[i], must, must, {{rank, acknowledged}});
    }
    EXPECT_EQ(values[kPushed], 0);
    return true;
  }
  // Of the generation.
  int64_t sum_of(uint32_t rank, uint32_t to) const {
    int64_t sum = 0;
    for (uint32_t step = base_ + 1; step <= to; ++step) {
      const WorkerStep of_worker{rank, step, generation_.number};
      const WorkerStep of_first{0, step, generation_.number};
      sum += gradient_of(of_worker) * lr_of(mode_.is_sync ? of_first : of_worker);
    }
    return sum;
  }
  struct Own {
    uint32_t rank = 0;
    uint32_t acknowledged = 0;
  };
  // to: the last step that is in it where all step as one; least: that all have made.
  void check_sum(float value, uint32_t to, uint32_t least_step, std::optional<Own> own) const {
    int64_t least = 0, most = 0;
    for (uint32_t rank = 0; rank < generation_.workers; ++rank) {
      const bool is_own = own && own->rank == rank && !mode_.is_sync;
      const uint32_t there = is_own ? std::max(least_step, own->acknowledged) : least_step;
      least += sum_of(rank, there);
      most += sum_of(rank, mode_.is_sync ? to : asked_[rank]);
    }
    const int64_t divisor = mode_.is_sync ? std::max(generation_.workers, 1u) : 1;
    const int64_t sum = static_cast<int64_t>(-value) - begin_sum_;
    ASSERT_GE(sum, least / divisor) << "step " << least_step << " of all is not there";
    ASSERT_LE(sum, most / divisor) << "a step of somebody counts twice, or came too soon";
  }

  PsWorld& world_;
  const Mode mode_;
  const std::function<bool()> goes_on_;
  uint32_t last_ = kLeastSteps;
  Generation generation_{};
  uint32_t next_workers_ = 0;
  bool is_changing_ = false;
  bool is_begun_ = false;  // the next generation
  // When the generation began: the sum of all before, and the step that all have made.
  int64_t begin_sum_ = 0;
  uint32_t base_ = 0;
  std::array<uint32_t, kMostWorkers> asked_{};
  std::deque<std::vector<float>> pulled_;  // who does not wait for it to the end is written to
  std::vector<uint32_t> gone_;
  uint32_t ended_ = 0;
  uint64_t restarts_ = 0;
  uint64_t refused_ = 0;  // steps of workers that came late
  uint32_t changes_ = 0;
};

struct Disturbs {
  bool loses_servers = false;
  bool changes_workers = false;
};

// Servers are lost one after the other, each after all is kept twice again.
void keeps_pace(Mode mode, Disturbs what) {
  uint64_t losses = 0, restarts = 0, changes = 0, refused = 0;
  const uint64_t ran = for_each_seed(kSeeds, [&](uint64_t seed) {
    if (what.loses_servers && seed % kFewer != 0 && !replays_one_seed()) return;
    const uint32_t servers = 2 + static_cast<uint32_t>(seed / kFewer % 2);
    PsWorld world({.servers = servers, .workers = kWorkers}, seed);
    uint32_t lost = 0;
    std::optional<Walk> walk;
    walk.emplace(world, mode, [&] {
      return (what.loses_servers && lost < kLosses) ||
             (what.changes_workers && walk->changes() < kChanges);
    });
    std::optional<ServerId> ended;
    while (!walk->has_ended() && world.steps() < kMostSteps && !testing::Test::HasFailure()) {
      walk->restart_workers();
      if (what.changes_workers && walk->changes() < kChanges && world.draw(1500) == 0) {
        walk->change(1 + static_cast<uint32_t>(world.draw(kMostWorkers)));
      }
      const bool disturbs = what.loses_servers && world.draw(250) == 0;
      if (disturbs && ended) {
        world.restart(*std::exchange(ended, std::nullopt));
      } else if (disturbs && world.is_whole()) {
        ++lost;
        ended = static_cast<ServerId>(world.draw(servers));
        world.kill(*ended);
      } else if (what.loses_servers && world.draw(400) == 0) {
        world.hand_over(static_cast<ServerId>(world.draw(servers)), 2);
      }
      world.step();
    }
    ASSERT_TRUE(walk->has_ended()) << "a worker waits for ever";
    losses += lost;
    restarts += walk->restarts();
    changes += walk->changes();
    refused += walk->refused();
  });
  std::printf("paces: %" PRIu64 " seeds, %" PRIu64 " losses, %" PRIu64 " restarts, %" PRIu64
              " other numbers of workers, %" PRIu64 " of those before refused\n",
              ran, losses, restarts, changes, refused);
  EXPECT_TRUE(!what.loses_servers || ran < 10 || (losses > 0 && restarts > 0));
  EXPECT_TRUE(!what.changes_workers || ran < 10 || (changes > 0 && refused > 0));
}

TEST(ParameterServer, StepsOnceForAllWorkers) { keeps_pace({.is_sync = true}, {}); }

TEST(ParameterServer, StepsOnceForAllWorkersWhateverServersAreLost) {
  keeps_pace({.is_sync = true}, {.loses_servers = true});
}

TEST(ParameterServer, IsNoStalerThanItMayBeWhateverServersAreLost) {
  keeps_pace({.staleness = 2}, {.loses_servers = true});
}

TEST(ParameterServer, StepsOnceForAllWorkersThatBecomeFewerOrMore) {
  keeps_pace({.is_sync = true}, {.changes_workers = true});
}

TEST(ParameterServer, StepsOnceForAllWorkersThatChangeWhateverServersAreLost) {
  keeps_pace({.is_sync = true}, {.loses_servers = true, .changes_workers = true});
}

TEST(ParameterServer, IsNoStalerThanItMayBeWithWorkersThatBecomeFewerOrMore) {
  keeps_pace({.staleness = 2}, {.loses_servers = true, .changes_workers = true});
}

}  // namespace
}  // namespace rdmacoll::ps::pace_sim_test
