// Messages that are placed in users' memory, and failures: once an operation has failed on a rank,
// its user may do with the memory what he likes, whatever the others still do. Simulated, from
// seeds.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>

#include "tests/sim/seeds.h"
#include "tests/sim/sim_world.h"
#include "tests/unit/engine/in_heap.h"

namespace rdmacoll::direct_placement_sim_test {
namespace {

constexpr size_t kNumbers = 6000;  // of a rank's output
constexpr int32_t kUsersOwn = 0x5EED;

Config config_that_places() {
  Config config;
  config.log_level = LogLevel::Error;
  config.heap_bytes = 256 << 10;
  config.zero_copy_remote_bytes = 128;
  return config;
}

// One operation of which much is placed, on every rank of a world.
class Exchange {
 public:
  Exchange(SimWorld& world, uint64_t kind) : world_(world), kind_(kind % 4) {
    for (Heap* heap : world.heaps()) {
      heap_of_this_rank = heap;
      inputs_.emplace_back(kNumbers, 1);
      outputs_.emplace_back(kNumbers, 0);
    }
    heap_of_this_rank = nullptr;
    works_.resize(outputs_.size());
  }

  void start(int r) {
    Communicator& c = world_.rank(r);
    const auto index = static_cast<size_t>(r);
    Result<WorkPtr> started = start_on(c, inputs_[index], outputs_[index]);
    if (!started.ok()) return;  // it has heard of the failure already
    works_[index] = started.take();
    works_[index]->on_done([this, index](const Status& status) {
      if (status.ok()) ended_wrong_ |= !all_are(outputs_[index], kind_ < 2 ? 0 : 1);
      std::fill(outputs_[index].begin(), outputs_[index].end(), kUsersOwn);
      std::fill(inputs_[index].begin(), inputs_[index].end(), kUsersOwn);
    });
  }
  bool done(int r) const {
    const WorkPtr& work = works_[static_cast<size_t>(r)];
    return work == nullptr || work->done();
  }
  bool failed(int r) const {
    const WorkPtr& work = works_[static_cast<size_t>(r)];
    return work != nullptr && work->done() && !work->status().ok();
  }
  bool is_users_own(int r) const {
    const auto index = static_cast<size_t>(r);
    return works_[index] == nullptr || all_are(outputs_[index], kUsersOwn);
  }
  // Whether a rank ended well with other numbers, such as what the user of a rank that failed has
  // written since.
  bool ended_wrong() const { return ended_wrong_; }

 private:
  using Numbers = HeapVector<int32_t>;

  static bool all_are(const Numbers& numbers, int32_t value) {
    return std::all_of(numbers.begin(), numbers.end(), [&](int32_t n) { return n == value; });
  }

  Result<WorkPtr> start_on(Communicator& c, Numbers& in, Numbers& out) const {
    const uint64_t all = kNumbers * sizeof(int32_t);
    const size_t share = kNumbers / static_cast<size_t>(c.size());
    std::vector<ConstBuffer> from;
    std::vector<MutableBuffer> to;
    for (size_t r = 0; r < static_cast<size_t>(c.size()); ++r) {
      from.push_back({in.data() + r * share, share * sizeof(int32_t)});
      to.push_back({out.data() + r * share, share * sizeof(int32_t)});
    }
    switch (kind_) {
      case 0:
        return c.all_reduce(out.data(), out.data(), kNumbers, DType::Int32, ReduceOp::Sum);
      case 1:
        return c.broadcast(out.data(), all, 0);
      case 2:
        return c.all_gather(from[0], to);
      default:
        return c.all_to_all(from, to);
    }
  }

  SimWorld& world_;
  const uint64_t kind_;
  std::vector<Numbers> inputs_, outputs_;
  std::vector<WorkPtr> works_;
  bool ended_wrong_ = false;
};

struct Seen {
  uint64_t landed = 0, failed = 0;
};

// One rank dies, or stands still until the others have given up and then goes on.
void fail_in_the_middle(uint64_t seed, Seen* seen) {
  std::mt19937_64 random(seed);
  SimOptions options;
  options.world = 2 + static_cast<int>(random() % 4);
  // Bytes that outlive the news of a death, and what the others ask each other then.
  constexpr int64_t kDelays[] = {20'000, 2'000'000, 20'000'000, 600'000'000};
  options.max_delay_ns = kDelays[random() % std::size(kDelays)];
  SimWorld world(seed, options, config_that_places());
  Exchange exchange(world, random());
  const int victim = static_cast<int>(random() % static_cast<uint64_t>(options.world));
  const bool dies = random() % 3 == 0;
  const bool comes_late = random() % 3 == 0;
  for (int r = 0; r < options.world; ++r) {
    if (r != victim || !comes_late) exchange.start(r);
  }
  for (uint64_t steps = random() % 1'500; steps > 0; --steps) world.step();
  if (dies) {
    world.kill(victim);
  } else {
    world.stop(victim);
  }
  const auto others_done = [&] {
    for (int r = 0; r < options.world; ++r) {
      if (r != victim && !exchange.done(r)) return false;
    }
    return true;
  };
  ASSERT_TRUE(world.run_until(others_done));
  if (!dies) {
    world.resume(victim);
    if (comes_late) exchange.start(victim);
    ASSERT_TRUE(world.run_until([&] { return exchange.done(victim); }));
  }
  for (int i = 0; i < 1'000; ++i) world.step();
  EXPECT_FALSE(exchange.ended_wrong());
  for (int r = 0; r < options.world; ++r) {
    if (r == victim && dies) continue;
    EXPECT_TRUE(exchange.is_users_own(r)) << "rank " << r;
    seen->failed += exchange.failed(r);
  }
  seen->landed += world.network().counts().to_parts;
}

TEST(DirectPlacement, NothingLandsInWhatAFailedOperationHasGivenBack) {
  Seen seen;
  const uint64_t ran = for_each_seed(300, [&](uint64_t seed) { fail_in_the_middle(seed, &seen); });
  if (ran >= kEnoughToCount) {
    EXPECT_GT(seen.landed, 3 * ran);
    EXPECT_GT(seen.failed, ran);
  }
  std::printf("placements: %" PRIu64 " seeds, %" PRIu64 " puts landed, %" PRIu64
              " operations failed\n",
              ran, seen.landed, seen.failed);
}

}  // namespace
}  // namespace rdmacoll::direct_placement_sim_test
