// Faults at random moments of random scripts, each from one seed (seeds.h): a rank dies, stands
// still for longer than operations may take, or loses the link to another; or a whole host dies or
// stands still. Every operation of the others ends; what ended well has the right values; and what
// was given back to its user, with an error or without, nobody writes any more, also not who comes
// back.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "tests/sim/hosts.h"
#include "tests/sim/script.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_world.h"

namespace rdmacoll::faults_sim_test {
namespace {

constexpr int kOperations = 6;
constexpr uint64_t kMomentMax = 3'000;  // steps until the fault; about half of a script

enum class Fault { Death, Standstill, LostLink, kCount };

struct Totals {
  uint64_t faults[static_cast<size_t>(Fault::kCount)] = {};
  uint64_t of_hosts = 0;  // of them, those that befell a whole host of several ranks
  uint64_t ended_well = 0, failed = 0, rounds = 0;
};

class Accident {
 public:
  Accident(uint64_t seed, Where where) : random_(seed) {
    const Config config = random_ranks(random_, where, &options_);
    // Bytes outlive the news of a death, or also the reading of call logs that follows it.
    if (random_() % 3 == 0) options_.max_delay_ns = random_() % 2 == 0 ? 2'000'000 : 600'000'000;
    fault_ = static_cast<Fault>(random_() % static_cast<uint64_t>(Fault::kCount));
    if (fault_ == Fault::LostLink && options_.mapped) fault_ = Fault::Death;  // it has no link
    world_ = std::make_unique<SimWorld>(seed, options_, config);
    script_ = std::make_unique<Script>(random_, world_->heaps(), kOperations);
    victim_ = random_rank();
    while (other_ == victim_) other_ = random_rank();
    victims_ = {victim_};
    if (where == Where::OnHosts) {
      const std::vector<int> neighbours = ranks_of_host(options_.hosts, host_of(victim_));
      const bool has_link = host_of(other_) != host_of(victim_);
      if (fault_ == Fault::LostLink && !has_link) fault_ = Fault::Death;
      if (fault_ != Fault::LostLink && random_() % 2 == 0) victims_ = neighbours;
    }
    works_.resize(static_cast<size_t>(options_.world));
  }

  void run(Totals* totals) {
    start_everything();
    for (uint64_t steps = random_() % kMomentMax; steps > 0; --steps) world_->step();
    happen();
    ASSERT_TRUE(world_->run_until([&] { return all_done(fault_ == Fault::LostLink); })) << "hangs";
    if (fault_ == Fault::Standstill) {
      for (const int victim : victims_) world_->resume(victim);
      ASSERT_TRUE(world_->run_until([&] { return all_done(true); })) << "hangs when it goes on";
    }
    for (int i = 0; i < 1'000; ++i) world_->step();
    ++totals->faults[static_cast<size_t>(fault_)];
    totals->of_hosts += victims_.size() > 1;
    totals->rounds += world_->rounds();
    for (int rank = 0; rank < options_.world; ++rank) check(rank, totals);
  }

 private:
  int random_rank() { return static_cast<int>(random_() % static_cast<uint64_t>(options_.world)); }

  int host_of(int rank) const { return options_.hosts[static_cast<size_t>(rank)]; }
  bool is_victim(int rank) const {
    return std::find(victims_.begin(), victims_.end(), rank) != victims_.end();
  }

  void start_everything() {
    for (int i = 0; i < script_->operations(); ++i) {
      for (int rank = 0; rank < options_.world; ++rank) {
        works_[static_cast<size_t>(rank)].push_back(script_->start(i, world_->rank(rank)));
      }
    }
  }

  void happen() {
    switch (fault_) {
      case Fault::Death:
        for (const int victim : victims_) world_->kill(victim);
        return;
      case Fault::Standstill:
        for (const int victim : victims_) world_->stop(victim);
        return;
      case Fault::LostLink:
        return world_->between_hosts().cut(victim_, other_);
      case Fault::kCount:
        break;
    }
  }

  bool all_done(bool with_victims) const {
    for (int rank = 0; rank < options_.world; ++rank) {
      if (is_victim(rank) && !with_victims) continue;
      for (const auto& works : works_[static_cast<size_t>(rank)]) {
        for (const WorkPtr& work : works) {
          if (!work->done()) return false;
        }
      }
    }
    return true;
  }

  void check(int rank, Totals* totals) const {
    if (is_victim(rank) && fault_ == Fault::Death) return;
    for (int i = 0; i < script_->operations(); ++i) {
      const auto& works = works_[static_cast<size_t>(rank)][static_cast<size_t>(i)];
      const bool well = std::all_of(works.begin(), works.end(),
                                    [](const WorkPtr& work) { return work->status().ok(); });
      totals->ended_well += well;
      totals->failed += !well;
      if (well) {
        ASSERT_EQ(script_->check(i, rank), "");
      }
      ASSERT_EQ(script_->check_given_back(i, rank), "");
      for (const WorkPtr& work : works) {
        ASSERT_NE(work->status().code(), StatusCode::Mismatch) << work->status().message();
      }
    }
  }

  std::mt19937_64 random_;
  SimOptions options_;
  Fault fault_ = Fault::Death;
  int victim_ = 0;
  int other_ = 0;             // end of the lost link
  std::vector<int> victims_;  // all of them, at the same moment
  std::unique_ptr<SimWorld> world_;
  std::unique_ptr<Script> script_;
  std::vector<std::vector<std::vector<WorkPtr>>> works_;  // by rank, operation
};

void run_accidents(const char* name, Where where) {
  Totals totals;
  const uint64_t ran =
      for_each_seed(150, [&](uint64_t seed) { Accident(seed, where).run(&totals); });
  if (ran >= kEnoughToCount) {
    EXPECT_GT(totals.failed, ran) << "the faults come too late to hurt";
    EXPECT_GT(totals.ended_well, ran) << "the faults come too early to tell";
    if (where == Where::OnHosts) {
      EXPECT_GT(totals.of_hosts, ran / 8) << "few befall a host";
    }
  }
  std::printf("%s: %" PRIu64 " seeds, %" PRIu64 " deaths, %" PRIu64 " standstills, %" PRIu64
              " lost links, %" PRIu64 " of whole hosts, %" PRIu64 " operations ended well, %" PRIu64
              " failed, %" PRIu64 " rounds\n",
              name, ran, totals.faults[0], totals.faults[1], totals.faults[2], totals.of_hosts,
              totals.ended_well, totals.failed, totals.rounds);
}

TEST(Simulation, FaultsEndInErrorsAndWriteNothingAfterwards) {
  run_accidents("faults", Where::OnOneHostOrMany);
}

TEST(Hosts, FaultsEndInErrorsAndWriteNothingAfterwards) {
  run_accidents("faults on hosts", Where::OnHosts);
}

}  // namespace
}  // namespace rdmacoll::faults_sim_test
