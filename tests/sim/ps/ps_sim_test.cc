// Pushes and pulls while servers are lost: whatever is acknowledged is there, exactly once, and
// nobody waits for ever. Gradients are integers and the rate is 1, so a table is minus the sum of
// what was pushed, bit for bit.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/ps/table/saved.h"
#include "tests/sim/ps/ps_world.h"
#include "tests/sim/seeds.h"

namespace rdmacoll::ps {
namespace {

constexpr uint64_t kSeeds = 60;
constexpr uint64_t kMostSteps = 3'000'000;  // of a world: ten times as many as it takes
constexpr int64_t kLimitMs = 1'000'000'000;
constexpr uint32_t kDenseTables = 3;
constexpr uint32_t kElements = 8;
constexpr uint32_t kRows = kDenseTables;  // the table of rows
constexpr uint64_t kIds = 24;
constexpr int kOperations = 25;
constexpr uint64_t kFewer = 8;
constexpr uint32_t kLosses = 3;  // of servers, one after the other

// What was pushed, by table and by element or id.
class Audit {
 public:
  using Place = std::pair<uint32_t, uint64_t>;
  struct Sums {
    int64_t asked = 0;  // acknowledged or not
    void ask(const void* who, int64_t gradient) {
      asked += gradient;
      asked_by[who] += gradient;
    }
    int64_t acknowledged = 0;
    std::map<const void*, int64_t> asked_by{};  // a program
  };
  Sums& of(uint32_t table, uint64_t place) { return sums_[{table, place}]; }
  std::map<Place, Sums>& all() { return sums_; }

 private:
  std::map<Place, Sums> sums_;
};

// A worker's program: pushes and pulls in turn, some of them under way at a time.
class Program {
 public:
  Program(PsWorld& world, Audit& audit, Client& client)
      : world_(world), audit_(audit), client_(client) {}

  // goes_on: whether there is more to be done than a program's own operations.
  void run(const std::function<bool()>& goes_on) {
    create();
    for (int i = 0; (i < kOperations || goes_on()) && !testing::Test::HasFailure(); ++i) {
      const uint64_t what = world_.draw(6);
      if (what < 2) push_range();
      if (what == 2 || what == 3) push_rows();
      if (what == 4) pull_range();
      if (what == 5) pull_rows();
      if (world_.draw(3) == 0) confirm();
      if (world_.draw(100) == 0) use_new_table();
    }
    confirm();
  }
  // Pulls of dense tables alone: it asks no server for long, so it hears of nothing.
  void watch(const std::function<bool()>& goes_on) {
    create();
    while (goes_on() && !testing::Test::HasFailure()) {
      check_range(static_cast<uint32_t>(world_.draw(kDenseTables)),
                  [&](uint32_t table) { return pulled(table); });
    }
  }
  void pull_all() {
    for (uint32_t table = 0; table < kDenseTables; ++table) pull_range(table);
    pull_rows();
  }
  void create() {
    const Optimizer descends{.kind = OptimizerKind::Sgd, .lr = 1};
    for (uint32_t table = 0; table < kDenseTables; ++table) {
      good(client_.create(
          table,
          {.name = "dense" + std::to_string(table), .elements = kElements, .optimizer = descends}));
    }
    good(client_.create(
        kRows, {.name = "rows", .kind = TableKind::Rows, .dim = 1, .optimizer = descends}));
  }

 private:
  // What a pull that is asked for now must have.
  struct Due {
    int64_t acknowledged = 0;
    int64_t own = 0;  // where no server is lost until it has ended
  };
  using Pushed = std::vector<std::pair<Audit::Place, int64_t>>;
  Limit limit() const { return {Deadline::after_ms(world_.clock(), kLimitMs), {}}; }
  void good(const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); }

  // Servers that were started again have to learn of it.
  void use_new_table() {
    const uint32_t table = world_.new_table();
    good(client_.create(table, {.name = "new" + std::to_string(table), .elements = kElements}));
    const std::vector<float> ones(kElements, 1.0f);
    good(client_.wait(client_.push_range(table, 0, ones, PushAs::Gradient, limit()), limit()));
    std::vector<float> values(kElements);
    good(client_.wait(client_.pull_range(table, 0, values, limit()), limit()));
    EXPECT_EQ(values, ones);
    // What is restored is pushed, too.
    std::vector<float> saved(kCountFloats + kElements, 5.0f);
    good(client_.wait(client_.restore_shard(table, 0, saved, limit()), limit()));
    good(client_.wait(client_.push_range(table, 0, ones, PushAs::Gradient, limit()), limit()));
    good(client_.wait(client_.pull_range(table, 0, values, limit()), limit()));
    EXPECT_EQ(values, std::vector<float>(kElements, 6.0f));
  }
  void push_range() {
    const auto table = static_cast<uint32_t>(world_.draw(kDenseTables));
    const uint64_t first = world_.draw(kElements);
    const auto gradient = static_cast<int64_t>(1 + world_.draw(5));
    const std::vector<float> values(kElements - first, static_cast<float>(gradient));
    Pushed pushed;
    for (uint64_t i = first; i < kElements; ++i) pushed.push_back({{table, i}, gradient});
    note(pushed);
    open_.emplace_back(client_.push_range(table, first, values, PushAs::Gradient, limit()),
                       std::move(pushed));
  }
  void push_rows() {
    std::vector<uint64_t> ids(1 + world_.draw(8));
    std::vector<float> values;
    Pushed pushed;
    for (uint64_t& id : ids) {
      id = world_.draw(kIds);
      values.push_back(static_cast<float>(1 + world_.draw(5)));
      pushed.push_back({{kRows, id}, static_cast<int64_t>(values.back())});
    }
    note(pushed);
    open_.emplace_back(client_.push_rows(kRows, ids, values.data(), PushAs::Gradient, limit()),
                       std::move(pushed));
  }
  void note(const Pushed& pushed) {
    for (const auto& [place, gradient] : pushed)
      audit_.of(place.first, place.second).ask(this, gradient);
  }
  // What is open has ended; only then it is acknowledged.
  void confirm() {
    for (const auto& [batch, pushed] : std::exchange(open_, {})) {
      good(client_.wait(batch, limit()));
      for (const auto& [place, gradient] : pushed) {
        audit_.of(place.first, place.second).acknowledged += gradient;
      }
    }
  }
  void pull_range() { pull_range(static_cast<uint32_t>(world_.draw(kDenseTables))); }
  void pull_range(uint32_t of) {
    check_range(of,
                [&](uint32_t table) { return world_.draw(3) == 0 ? saved(table) : pulled(table); });
  }
  std::vector<float> pulled(uint32_t table) {
    std::vector<float> values(kElements);
    good(client_.wait(client_.pull_range(table, 0, values, limit()), limit()));
    return values;
  }
  std::vector<float> saved(uint32_t table) {
    std::vector<float> all(kCountFloats + kElements);
    good(client_.wait(client_.save_shard(table, 0, all, limit()), limit()));
    return {all.begin() + kCountFloats, all.end()};
  }
  template <typename Values>
  void check_range(uint32_t table, Values values_of) {
    std::vector<Due> before;
    for (uint64_t i = 0; i < kElements; ++i) before.push_back(due(audit_.of(table, i)));
    const std::vector<float> values = values_of(table);
    for (uint64_t i = 0; i < kElements; ++i) check({table, i}, before[i], values[i]);
  }
  void pull_rows() {
    std::vector<uint64_t> ids;
    std::vector<Due> before;
    for (uint64_t id = 0; id < kIds; ++id) {
      ids.push_back(id);
      before.push_back(due(audit_.of(kRows, id)));
    }
    std::vector<float> values(kIds);
    if (world_.draw(3) == 0) {
      std::vector<float> saved(kIds * (kCountFloats + 1));
      good(client_.wait(client_.save_rows(kRows, ids, saved.data(), limit()), limit()));
      for (uint64_t id = 0; id < kIds; ++id) {
        values[id] = saved[id * (kCountFloats + 1) + kCountFloats];
      }
      check_list(ids[world_.draw(kIds)], before);
    } else {
      good(client_.wait(client_.pull_rows(kRows, ids, values.data(), limit()), limit()));
    }
    for (uint64_t id = 0; id < kIds; ++id) check({kRows, id}, before[id], values[id]);
  }
  // A row that was pushed to is there, whoever has its bucket by now.
  void check_list(uint64_t id, const std::vector<Due>& before) {
    std::vector<uint64_t> listed(1 + kIds);
    const uint32_t bucket = bucket_of_row(kRows, id);
    good(client_.wait(client_.list_rows(kRows, bucket, id, listed, limit()), limit()));
    const bool is_listed = listed[0] > 0 && listed[1] == id;
    ASSERT_TRUE(is_listed || before[id].acknowledged == 0) << "row " << id << " is lost";
  }
  Due due(Audit::Sums& sums) const { return {sums.acknowledged, sums.asked_by[this]}; }
  void check(const Audit::Place& place, const Due& before, float value) {
    const auto sum = static_cast<int64_t>(-value);
    ASSERT_GE(sum, before.acknowledged)
        << "a pull has not what was acknowledged before it, of table " << place.first << ", "
        << place.second;
    ASSERT_TRUE(!world_.is_undisturbed() || sum >= before.own)
        << "a pull has not what its worker has pushed, of table " << place.first << ", "
        << place.second;
    ASSERT_LE(sum, audit_.of(place.first, place.second).asked)
        << "something was applied twice, of table " << place.first << ", " << place.second;
  }

  PsWorld& world_;
  Audit& audit_;
  Client& client_;
  std::vector<std::pair<BatchPtr, Pushed>> open_;
};

uint64_t reads = 0;  // of servers' memory, in all worlds

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
  world.add_worker([&](Client& client, uint32_t) {
    Program program(world, audit, client);
    program.watch([&] { return running > 0; });
  });
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
}

// run: of a seed; how many servers were lost.
void for_all(const std::function<uint32_t(uint64_t)>& run, bool loses) {
  uint64_t losses = 0;
  const uint64_t read_before = reads;
  const uint64_t ran = for_each_seed(kSeeds, [&](uint64_t seed) { losses += run(seed); });
  std::printf("servers: %" PRIu64 " seeds, %" PRIu64 " losses, %" PRIu64 " reads\n", ran, losses,
              reads - read_before);
  if (ran < kEnoughToCount) return;
  EXPECT_TRUE(!loses || losses > 0);
  EXPECT_GT(reads, read_before);
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
}  // namespace rdmacoll::ps
