// Ranks that stand still, each case from one seed (seeds.h): one that does not run is given up long
// before the deadline and learns so when it wakes; one that runs and is late is waited for.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "tests/sim/seeds.h"
#include "tests/sim/sim_world.h"

namespace rdmacoll::stall_sim_test {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kBoundMs = 10'000;

class Standstill {
 public:
  explicit Standstill(uint64_t seed)
      : random_(seed), world_(patient_world(seed, random_, kBoundMs)) {
    const auto size = static_cast<uint64_t>(world_->size());
    victim_ = static_cast<int>(random_() % size);
    numbers_.assign(size, {1, 2, 3});
    works_.resize(numbers_.size());
  }

  int victim() const { return victim_; }
  SimWorld& world() { return *world_; }
  const Work& work(int rank) const { return *works_[static_cast<size_t>(rank)]; }

  void start(int rank) {
    auto& numbers = numbers_[static_cast<size_t>(rank)];
    auto started = world_->rank(rank).all_reduce(numbers.data(), numbers.data(), numbers.size(),
                                                 DType::Int32, ReduceOp::Sum);
    ASSERT_TRUE(started.ok()) << started.status().message();
    works_[static_cast<size_t>(rank)] = started.take();
  }
  void start_others() {
    for (int rank = 0; rank < world_->size(); ++rank) {
      if (rank != victim_) start(rank);
    }
  }

  // So much virtual time, in which all that run have many turns.
  void pass(int64_t seconds) {
    for (int64_t tenth = 0; tenth < 10 * seconds; ++tenth) {
      for (int i = 0; i < 20; ++i) world_->step();
      world_->network().advance(kSecondNs / 10);
    }
  }
  bool others_are_done() const {
    for (int rank = 0; rank < world_->size(); ++rank) {
      if (rank != victim_ && !work(rank).done()) return false;
    }
    return true;
  }

 private:
  std::mt19937_64 random_;
  std::unique_ptr<SimWorld> world_;
  int victim_;
  std::vector<std::vector<int32_t>> numbers_;
  std::vector<WorkPtr> works_;
};

void stop_one(uint64_t seed) {
  Standstill standstill(seed);
  SimWorld& world = standstill.world();
  standstill.start(standstill.victim());
  world.stop(standstill.victim());
  standstill.start_others();
  standstill.pass(kBoundMs / 1000 / 2);
  EXPECT_FALSE(standstill.others_are_done()) << "given up too soon";
  standstill.pass(2 * kBoundMs / 1000);
  ASSERT_TRUE(standstill.others_are_done()) << "not given up";
  const std::string victim = "rank " + std::to_string(standstill.victim()) + " does not run";
  for (int rank = 0; rank < world.size(); ++rank) {
    if (rank == standstill.victim()) continue;
    EXPECT_EQ(standstill.work(rank).status().code(), StatusCode::PeerFailed);
    EXPECT_NE(standstill.work(rank).status().message().find(victim), std::string::npos)
        << standstill.work(rank).status().message();
    EXPECT_EQ(world.rank(rank).lost_ranks(), std::vector<int>{standstill.victim()});
  }
  world.resume(standstill.victim());
  standstill.pass(5);
  ASSERT_TRUE(standstill.work(standstill.victim()).done()) << "hangs when it wakes";
  // All that it needed for this one may have come before; for another it has not.
  if (!standstill.work(standstill.victim()).status().ok()) return;
  standstill.start(standstill.victim());
  standstill.pass(5);
  ASSERT_TRUE(standstill.work(standstill.victim()).done()) << "hangs after it woke";
  EXPECT_FALSE(standstill.work(standstill.victim()).status().ok());
}

void let_one_be_late(uint64_t seed) {
  Standstill standstill(seed);
  standstill.start_others();
  standstill.pass(5 * kBoundMs / 1000);
  EXPECT_FALSE(standstill.others_are_done()) << "given up, though it runs";
  standstill.start(standstill.victim());
  ASSERT_TRUE(standstill.world().run_until(
      [&] { return standstill.others_are_done() && standstill.work(standstill.victim()).done(); }));
  for (int rank = 0; rank < standstill.world().size(); ++rank) {
    EXPECT_TRUE(standstill.work(rank).status().ok()) << standstill.work(rank).status().message();
  }
}

TEST(Standstills, WhoDoesNotRunIsGivenUpAndLearnsOfIt) {
  std::printf("standstills: %" PRIu64 " seeds\n", for_each_seed(20, stop_one));
}

TEST(Standstills, WhoRunsAndIsLateIsWaitedFor) {
  std::printf("standstills: %" PRIu64 " seeds\n", for_each_seed(10, let_one_be_late));
}

}  // namespace
}  // namespace rdmacoll::stall_sim_test
