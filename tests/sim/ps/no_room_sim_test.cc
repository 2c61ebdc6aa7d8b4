// Workers push to more large tables than servers have room for, while tables are dropped and
// servers lost: what is refused is nowhere, what is acknowledged is there, and what else a worker
// pushes to the same buckets is taken, in its turn and once.
#include <gtest/gtest.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/ps/table/dense_shard.h"
#include "tests/sim/ps/program.h"
#include "tests/sim/ps/ps_world.h"
#include "tests/sim/seeds.h"

namespace rdmacoll::ps::no_room_sim_test {
namespace {

constexpr uint64_t kSeeds = 60;
constexpr uint64_t kMostSteps = 3'000'000;  // of a world: ten times as many as it takes
constexpr uint64_t kLongEnough = 100'000;   // steps, though fewer servers are lost
constexpr uint32_t kWorkers = 2;
constexpr uint32_t kLosses = 2;  // of servers, one after the other
// Rows and small tables have this alone, and always room in it: a large table takes more.
constexpr uint64_t kBytesOfOthers = 512 << 10;
constexpr uint64_t kLargeElements = 64 << 10;

struct LargeTable {
  uint32_t number = 0;
  int64_t asked = 0;  // refused or not
  int64_t acknowledged = 0;
  bool is_dropped = false;
};

TableSpec spec_of(uint32_t number) {
  return {.name = "large" + std::to_string(number), .elements = kLargeElements};
}

// Those that there are, of all workers; each is in the bucket of a table that others use.
class LargeTables {
 public:
  explicit LargeTables(PsWorld& world) : world_(world) {
    for (auto& table : now_) table = make();
  }
  using Ptr = std::shared_ptr<LargeTable>;
  Ptr any() const { return now_[world_.draw(now_.size())]; }
  void drop_any() {
    Ptr& one = now_[world_.draw(now_.size())];
    one->is_dropped = true;
    world_.drop(one->number);
    one = make();
  }
  const auto& all() const { return now_; }
  uint64_t refused = 0;

 private:
  Ptr make() {
    const auto beside = static_cast<uint32_t>(world_.draw(Program::kDenseTables));
    return std::make_shared<LargeTable>(LargeTable{world_.new_table(bucket_of_shard(beside, 0))});
  }

  PsWorld& world_;
  std::array<Ptr, 3> now_{};
};

// What a worker does with them, beside its program. It pushes ones.
class Guest {
 public:
  Guest(PsWorld& world, LargeTables& tables, Client& client)
      : world_(world), tables_(tables), client_(client) {}

  void act() {
    const uint64_t what = world_.draw(16);
    if (what < 6) push(tables_.any());
    if (what == 6 || what == 7) pull(tables_.any(), false);
    if (what == 8) confirm();
    if (what == 9) tables_.drop_any();
  }
  void confirm() {
    for (const auto& [batch, table] : std::exchange(open_, {})) {
      const Status status = client_.wait(batch, limit());
      if (status.ok()) {
        ++table->acknowledged;
      } else if (is_refused(*table, status)) {
        ++tables_.refused;
      }
    }
  }
  // is_last: nobody pushes any more.
  void pull(const LargeTables::Ptr& table, bool is_last) {
    ASSERT_TRUE(client_.create(table->number, spec_of(table->number)).ok());
    const int64_t acknowledged = table->acknowledged;
    float value = 0;
    const Status status =
        client_.wait(client_.pull_range(table->number, 0, {&value, 1}, limit()), limit());
    const auto sum = static_cast<int64_t>(value);
    if (!status.ok()) {
      ASSERT_TRUE(!is_refused(*table, status) || acknowledged == 0)
          << "what was acknowledged is lost: " << status.message();
      return;
    }
    ASSERT_GE(sum, acknowledged) << "a pull has not what was acknowledged before it";
    ASSERT_LE(sum, is_last ? acknowledged : table->asked)
        << "something was applied twice, or though it was refused";
  }

 private:
  Limit limit() const { return {Deadline::after_ms(world_.clock(), Program::kLimitMs), {}}; }
  void push(const LargeTables::Ptr& table) {
    ASSERT_TRUE(client_.create(table->number, spec_of(table->number)).ok());
    const std::vector<float> ones(1 + world_.draw(3), 1.0f);
    ++table->asked;
    open_.push_back({client_.push_range(table->number, 0, ones, PushAs::Gradient, limit()), table});
  }
  // False: it was dropped.
  static bool is_refused(const LargeTable& table, const Status& status) {
    if (table.is_dropped && status.code() == StatusCode::InvalidArgument) return false;
    EXPECT_EQ(status.code(), StatusCode::System) << status.message();
    EXPECT_NE(status.message().find("the server has no room for"), std::string::npos);
    return true;
  }

  PsWorld& world_;
  LargeTables& tables_;
  Client& client_;
  std::vector<std::pair<BatchPtr, LargeTables::Ptr>> open_;
};

struct Played {
  uint64_t refused = 0;
  uint32_t losses = 0;
};

Played play(uint64_t seed) {
  const uint32_t servers = 1 + static_cast<uint32_t>(seed % 4);
  const uint64_t large_bytes = DenseShard::memory_bytes(spec_of(0), 0);
  EXPECT_GT(large_bytes, kBytesOfOthers);
  const uint64_t larges = 1 + seed / 4 % 2;
  Audit audit;
  Played played;
  uint32_t running = kWorkers;
  std::optional<LargeTables> large;
  PsWorld world({.servers = servers, .memory_bytes = larges * large_bytes + kBytesOfOthers}, seed);
  LargeTables& tables = large.emplace(world);
  const auto goes_on = [&] {
    return (servers > 1 && played.losses < kLosses && world.steps() < kLongEnough) ||
           tables.refused == 0;
  };
  for (uint32_t i = 0; i < kWorkers; ++i) {
    world.add_worker([&](Client& client, uint32_t) {
      Program program(world, audit, client);
      Guest guest(world, tables, client);
      program.run([&] {
        guest.act();
        return goes_on();
      });
      guest.confirm();
      --running;
    });
  }
  std::optional<ServerId> ended;
  while (running > 0 && world.steps() < kMostSteps && !testing::Test::HasFailure()) {
    if (world.steps() > 200 && world.draw(300) == 0) {
      if (ended && world.draw(2) == 0) {
        world.restart(*std::exchange(ended, std::nullopt));
      } else if (servers > 1 && !ended && played.losses < kLosses && world.is_whole()) {
        ++played.losses;
        ended = static_cast<ServerId>(world.draw(servers));
        world.kill(*ended);
      }
    }
    world.step();
  }
  EXPECT_EQ(running, 0u) << "a worker waits for ever";
  if (testing::Test::HasFailure()) return played;
  for (auto& [place, sums] : audit.all()) EXPECT_EQ(sums.asked, sums.acknowledged);
  world.add_worker([&](Client& client, uint32_t) {
    Program program(world, audit, client);
    program.create();
    program.pull_all();
    Guest guest(world, tables, client);
    for (const auto& table : tables.all()) guest.pull(table, true);
  });
  EXPECT_TRUE(world.run(2 * kMostSteps)) << "a worker waits for ever";
  played.refused = tables.refused;
  return played;
}

TEST(ParameterServer, TakesWhatIsBehindAPushThatItHasNoRoomFor) {
  uint64_t refused = 0, losses = 0;
  const uint64_t ran = for_each_seed(kSeeds, [&](uint64_t seed) {
    const Played played = play(seed);
    refused += played.refused;
    losses += played.losses;
  });
  std::printf("no room: %" PRIu64 " seeds, %" PRIu64 " refused, %" PRIu64 " losses\n", ran, refused,
              losses);
  EXPECT_TRUE(ran < kEnoughToCount || (refused > 0 && losses > 0));
}

}  // namespace
}  // namespace rdmacoll::ps::no_room_sim_test
