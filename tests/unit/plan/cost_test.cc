// What the plans cost: messages and bytes per rank, as docs/ALGORITHMS.md and the headers say.
#include <gtest/gtest.h>

#include "csrc/plan/tiling.h"
#include "tests/unit/plan/worlds.h"

namespace rdmacoll::cost_test {
namespace {

struct Cost {
  uint64_t messages = 0;      // sent into slots
  uint64_t slot_bytes = 0;    // sent into slots
  uint64_t stage_bytes = 0;   // written into own stages
  uint64_t loaded_bytes = 0;  // from peers' stages
  bool operator==(const Cost&) const = default;
};

constexpr uint64_t kBlockBytes = 240;  // divisible by all the worlds here

// Of one tile that holds all of S: kBlockBytes per rank.
Cost cost_of(const Subject& subject, uint16_t rank, uint16_t world, uint16_t root = 0) {
  const Plan plan =
      make_plan(subject.collective, subject.algorithm, rank, subject.islands(world), root);
  const std::vector<uint64_t> block_bytes(plan.blocks, kBlockBytes);
  const uint64_t bytes = kBlockBytes * world;
  const Tiling tiling = is_contiguous(subject.collective)
                            ? Tiling::contiguous(bytes, plan, 2 * bytes, bytes, 1)
                            : Tiling::scattered(block_bytes, plan, bytes, bytes, 1);
  Cost cost;
  for (const Step& step : plan.steps) {
    const bool sends = step.kind == StepKind::Signal && step.counter == Counter::Data;
    cost.messages += sends && !is_stage_channel(step.channel);
  }
  for (const Operand& operand : plan.operands) {
    const uint64_t piece = tiling.piece(operand.blocks, 0).bytes;
    if (operand.buffer == Buffer::PeerSlot) cost.slot_bytes += piece;
    if (operand.buffer == Buffer::Stage) cost.stage_bytes += piece;
    if (operand.buffer == Buffer::PeerStage) cost.loaded_bytes += piece;
  }
  return cost;
}

Cost total(const Subject& subject, uint16_t world, uint16_t root = 0) {
  Cost sum;
  for (uint16_t rank = 0; rank < world; ++rank) {
    const Cost cost = cost_of(subject, rank, world, root);
    sum.messages += cost.messages;
    sum.slot_bytes += cost.slot_bytes;
    sum.stage_bytes += cost.stage_bytes;
    sum.loaded_bytes += cost.loaded_bytes;
  }
  return sum;
}

TEST(CostTest, RingSendsToTheNextOnly) {
  for (uint64_t n : {2, 3, 4, 6, 8}) {
    const uint64_t once = (n - 1) * kBlockBytes;
    for (uint16_t rank = 0; rank < n; ++rank) {
      EXPECT_EQ(cost_of({Collective::AllReduce, Algorithm::Ring, false}, rank, n),
                (Cost{2 * (n - 1), 2 * once, 0, 0}));
      EXPECT_EQ(cost_of({Collective::AllGather, Algorithm::Ring, false}, rank, n),
                (Cost{n - 1, once, 0, 0}));
      EXPECT_EQ(cost_of({Collective::ReduceScatter, Algorithm::Ring, false}, rank, n),
                (Cost{n - 1, once, 0, 0}));
    }
  }
}

TEST(CostTest, HalvingDoublingSendsTheRingsBytesInLogarithmicMessages) {
  const Subject subject{Collective::AllReduce, Algorithm::HalvingDoubling, false};
  for (uint16_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(cost_of(subject, rank, 8), (Cost{2 * 3, 2 * 7 * kBlockBytes, 0, 0}));
  }
  // World 6: four take part; two hand over S, in halves, and get S back.
  const uint64_t bytes = 6 * kBlockBytes;
  EXPECT_EQ(cost_of(subject, 0, 6), (Cost{2, bytes, 0, 0}));
  EXPECT_EQ(cost_of(subject, 1, 6), (Cost{2 * 2 + 2, bytes * 6 / 4 + bytes, 0, 0}));
  EXPECT_EQ(cost_of(subject, 5, 6), (Cost{2 * 2, bytes * 6 / 4, 0, 0}));
}

TEST(CostTest, TreeEdgesCarryEverythingOnce) {
  for (uint64_t n : {2, 3, 5, 8}) {
    const uint64_t edges = (n - 1) * n * kBlockBytes;
    for (uint16_t root : {0, 1}) {
      EXPECT_EQ(total({Collective::Broadcast, Algorithm::Tree, false}, n, root),
                (Cost{n - 1, edges, 0, 0}));
      EXPECT_EQ(total({Collective::Reduce, Algorithm::Tree, false}, n, root),
                (Cost{n - 1, edges, 0, 0}));
    }
    EXPECT_EQ(total({Collective::AllReduce, Algorithm::Tree, false}, n),
              (Cost{2 * (n - 1), 2 * edges, 0, 0}));
  }
  EXPECT_EQ(cost_of({Collective::Broadcast, Algorithm::Tree, false}, 0, 8).messages, 3u);
}

TEST(CostTest, OneShotSendsEverythingToWhoeverNeedsIt) {
  for (uint64_t n : {2, 3, 8}) {
    const uint64_t bytes = n * kBlockBytes;
    const Cost to_all{n - 1, (n - 1) * bytes, 0, 0};
    EXPECT_EQ(cost_of({Collective::AllReduce, Algorithm::OneShot, false}, 1, n), to_all);
    EXPECT_EQ(cost_of({Collective::Broadcast, Algorithm::OneShot, false}, 0, n), to_all);
    EXPECT_EQ(cost_of({Collective::Broadcast, Algorithm::OneShot, false}, 1, n), (Cost{}));
    EXPECT_EQ(cost_of({Collective::Reduce, Algorithm::OneShot, false}, 1, n),
              (Cost{1, bytes, 0, 0}));
    EXPECT_EQ(cost_of({Collective::Reduce, Algorithm::OneShot, false}, 0, n), (Cost{}));
  }
}

TEST(CostTest, TwoShotWritesItsOwnMemoryAndLoadsFromPeers) {
  for (uint64_t n : {2, 3, 8}) {
    const uint64_t once = (n - 1) * kBlockBytes;
    for (uint16_t rank = 0; rank < n; ++rank) {
      EXPECT_EQ(cost_of({Collective::AllReduce, Algorithm::TwoShot, true}, rank, n),
                (Cost{0, 0, n * kBlockBytes, 2 * once}));
      EXPECT_EQ(cost_of({Collective::ReduceScatter, Algorithm::TwoShot, true}, rank, n),
                (Cost{0, 0, once, once}));
    }
    const Subject reduce{Collective::Reduce, Algorithm::TwoShot, true};
    EXPECT_EQ(cost_of(reduce, 0, n), (Cost{0, 0, once, once}));
    EXPECT_EQ(cost_of(reduce, 1, n), (Cost{1, kBlockBytes, once, once}));
  }
}

TEST(CostTest, DirectMovesEachBlockOnce) {
  for (uint64_t n : {2, 3, 8}) {
    const Cost to_all{n - 1, (n - 1) * kBlockBytes, 0, 0};
    for (Collective collective :
         {Collective::AllGather, Collective::ReduceScatter, Collective::AllToAll}) {
      EXPECT_EQ(cost_of({collective, Algorithm::Direct, false}, 1, n), to_all);
    }
    EXPECT_EQ(cost_of({Collective::AllReduce, Algorithm::Direct, false}, 1, n),
              (Cost{2 * to_all.messages, 2 * to_all.slot_bytes, 0, 0}));
    EXPECT_EQ(cost_of({Collective::Scatter, Algorithm::Direct, false}, 0, n), to_all);
    EXPECT_EQ(cost_of({Collective::Scatter, Algorithm::Direct, false}, 1, n), (Cost{}));
    EXPECT_EQ(cost_of({Collective::Gather, Algorithm::Direct, false}, 0, n), (Cost{}));
    EXPECT_EQ(cost_of({Collective::Gather, Algorithm::Direct, false}, 1, n),
              (Cost{1, kBlockBytes, 0, 0}));
    EXPECT_EQ(cost_of({Collective::AllGather, Algorithm::Direct, true}, 1, n),
              (Cost{0, 0, kBlockBytes, (n - 1) * kBlockBytes}));
    const Subject broadcast{Collective::Broadcast, Algorithm::Direct, true};
    EXPECT_EQ(cost_of(broadcast, 0, n), (Cost{0, 0, n * kBlockBytes, 0}));
    EXPECT_EQ(cost_of(broadcast, 1, n), (Cost{0, 0, 0, n * kBlockBytes}));
  }
}

TEST(CostTest, BarrierRoundsAreLogarithmic) {
  const Subject barrier{Collective::Barrier, Algorithm::Dissemination, false};
  EXPECT_EQ(cost_of(barrier, 0, 2).messages, 1u);
  EXPECT_EQ(cost_of(barrier, 3, 5).messages, 3u);
  EXPECT_EQ(cost_of(barrier, 7, 8).messages, 3u);
  EXPECT_EQ(cost_of(barrier, 7, 9).messages, 4u);
}

}  // namespace
}  // namespace rdmacoll::cost_test
