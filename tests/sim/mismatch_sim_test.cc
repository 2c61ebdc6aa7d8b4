// Ranks that disagree, on a hostile network. Either one calls another collective, in the middle of
// agreed ones; or each takes another for the root of a broadcast, so that nobody sends. No rank may
// end that one well, unless it needs nothing of the others. The error of each says what both sides
// had called, which it reads from the others' memory.
//
// Or, on several hosts, one does not say that all blocks of an all_to_all are of one size, as the
// others do, and so takes another plan.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "tests/sim/hosts.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_world.h"

namespace rdmacoll::mismatch_sim_test {
namespace {

constexpr size_t kCount = 500;

struct Totals {
  uint64_t raised = 0, mismatches = 0, ended_well = 0;
};

class Disagreement {
 public:
  explicit Disagreement(uint64_t seed) : random_(seed) {
    SimOptions options;
    options.world = 2 + static_cast<int>(random_() % 5);
    options.mapped = random_() % 2 == 0;
    options.full_probability = random_() % 3 == 0 ? 0.3 : 0.02;
    world_ = std::make_unique<SimWorld>(seed, options, small_heaps());
    other_ = static_cast<int>(random_() % static_cast<uint64_t>(options.world));
    agreed_ = static_cast<int>(random_() % 3);
    all_wait_ = random_() % 4 == 0;
    data_.assign(static_cast<size_t>(options.world), std::vector<float>(kCount));
    out_ = data_;
  }

  void run(Totals* totals) {
    for (int r = 0; r < world_->size(); ++r) {
      for (int i = 0; i < agreed_; ++i) start(world_->rank(r).barrier(), r);
      if (all_wait_) {
        start(broadcast(r, (r + 1) % world_->size()), r);
      } else {
        start(r == other_ ? broadcast(r, 0) : all_reduce(r), r);
      }
      // What it was in is to be known also when it has gone on.
      start(world_->rank(r).barrier(), r);
    }
    ASSERT_TRUE(world_->run_until([&] {
      return std::all_of(works_.begin(), works_.end(),
                         [](const auto& started) { return started.work->done(); });
    })) << "a rank hangs";
    const std::string number = " #" + std::to_string(agreed_ + 1) + " (";
    for (const auto& [work, rank] : works_) {
      const Status& status = work->status();
      totals->ended_well += status.ok();
      if (status.ok()) continue;
      ++totals->raised;
      totals->mismatches += status.code() == StatusCode::Mismatch;
      ASSERT_NE(status.code(), StatusCode::Timeout) << status.message();
      const std::string& text = status.message();
      if (!all_wait_) {
        ASSERT_NE(text.find("all_reduce" + number), std::string::npos) << text;
      }
      ASSERT_NE(text.find("broadcast" + number), std::string::npos) << text;
    }
  }

 private:
  struct Started {
    WorkPtr work;
    int rank;
  };

  void start(Result<WorkPtr> work, int rank) {
    if (work.ok()) works_.push_back({work.take(), rank});
  }
  Result<WorkPtr> all_reduce(int r) {
    const auto at = static_cast<size_t>(r);
    return world_->rank(r).all_reduce(data_[at].data(), out_[at].data(), kCount, DType::Float32,
                                      ReduceOp::Sum);
  }
  Result<WorkPtr> broadcast(int r, int root) {
    return world_->rank(r).broadcast(data_[static_cast<size_t>(r)].data(), kCount * sizeof(float),
                                     root);
  }

  std::mt19937_64 random_;
  std::unique_ptr<SimWorld> world_;
  int other_ = 0;
  int agreed_ = 0;
  bool all_wait_ = false;
  std::vector<std::vector<float>> data_, out_;
  std::vector<Started> works_;
};

TEST(Simulation, MismatchesSayWhoCalledWhat) {
  Totals totals;
  const uint64_t ran = for_each_seed(200, [&](uint64_t seed) { Disagreement(seed).run(&totals); });
  if (ran >= kEnoughToCount) {
    EXPECT_GT(totals.mismatches, ran / 2);
    EXPECT_GT(totals.ended_well, 0u);
  }
  std::printf("mismatches: %" PRIu64 " seeds, %" PRIu64 " operations raised, %" PRIu64
              " as mismatches, %" PRIu64 " ended well\n",
              ran, totals.raised, totals.mismatches, totals.ended_well);
}

void say_different_things_of_blocks(uint64_t seed) {
  std::mt19937_64 random(seed);
  SimOptions options;
  const Config config = random_ranks(random, Where::OnHosts, &options);
  SCOPED_TRACE(text_of(options.hosts) + ", " + config.algorithm);
  SimWorld world(seed, options, config);
  const size_t ranks = options.hosts.size(), count = 1 + random() % 40;
  const size_t other = random() % ranks;
  std::vector<std::vector<int32_t>> in(ranks), out(ranks);
  std::vector<WorkPtr> works;
  for (size_t r = 0; r < ranks; ++r) {
    in[r].assign(count * ranks, 1);
    out[r].assign(count * ranks, 0);
    std::vector<ConstBuffer> inputs;
    std::vector<MutableBuffer> outputs;
    for (size_t b = 0; b < ranks; ++b) {
      inputs.push_back({in[r].data() + b * count, count * sizeof(int32_t)});
      outputs.push_back({out[r].data() + b * count, count * sizeof(int32_t)});
    }
    auto work =
        world.rank(static_cast<int>(r)).all_to_all(inputs, outputs, {.equal_blocks = r != other});
    ASSERT_TRUE(work.ok()) << work.status().message();
    works.push_back(work.take());
  }
  const auto all_done = [&] {
    return std::all_of(works.begin(), works.end(), [](const auto& work) { return work->done(); });
  };
  ASSERT_TRUE(world.run_until(all_done)) << "a rank hangs";
  bool told = false;
  for (const WorkPtr& work : works) {
    const Status& status = work->status();
    ASSERT_FALSE(status.ok());
    ASSERT_NE(status.code(), StatusCode::Timeout) << status.message();
    told |= status.code() == StatusCode::Mismatch;
    ASSERT_NE(status.message().find("in equal blocks"), std::string::npos) << status.message();
  }
  EXPECT_TRUE(told);
}

TEST(Hosts, WhoSaysSomethingElseOfBlocksIsTold) {
  for_each_seed(60, say_different_things_of_blocks);
}

}  // namespace
}  // namespace rdmacoll::mismatch_sim_test
