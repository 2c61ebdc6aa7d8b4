// Select: what exists, what is chosen, and that every choice has a plan.
#include "csrc/plan/select.h"

#include <gtest/gtest.h>

namespace rdmacoll {
namespace {

constexpr Reach kMapped{true};
constexpr Reach kUnmapped{false};
constexpr Collective kCollectives[] = {
    Collective::AllReduce, Collective::Broadcast,     Collective::Reduce,
    Collective::AllGather, Collective::ReduceScatter, Collective::AllToAll,
    Collective::Gather,    Collective::Scatter,       Collective::Barrier};

Algorithm chosen(Collective collective, uint64_t bytes, uint32_t world, Reach reach) {
  return choose(collective, bytes, world, reach, std::nullopt);
}

TEST(SelectTest, EveryChoiceExistsAndHasAPlanOfItsKind) {
  for (Collective collective : kCollectives) {
    for (Reach reach : {kMapped, kUnmapped}) {
      for (uint16_t world : {1, 2, 5, 64}) {
        for (uint64_t bytes : {uint64_t{0}, uint64_t{4}, uint64_t{1} << 16, UINT64_MAX}) {
          const Algorithm algorithm = chosen(collective, bytes, world, reach);
          EXPECT_TRUE(exists(collective, algorithm, reach)) << collective_name(collective);
          const Plan plan = make_plan(collective, algorithm, world - 1, world, reach, 0);
          EXPECT_EQ(plan.collective, collective);
          EXPECT_EQ(plan.algorithm, algorithm);
          EXPECT_EQ(plan.world, world);
          EXPECT_EQ(plan.rank, world - 1);
        }
      }
    }
  }
}

TEST(SelectTest, SmallReductionsTakeTheLatencyPath) {
  for (Reach reach : {kMapped, kUnmapped}) {
    EXPECT_EQ(chosen(Collective::AllReduce, 4, 2, reach), Algorithm::OneShot);
    EXPECT_EQ(chosen(Collective::AllReduce, 4, 16, reach), Algorithm::OneShot);
  }
}

TEST(SelectTest, LargeReductionsTakeTheBandwidthPath) {
  EXPECT_EQ(chosen(Collective::AllReduce, 64 << 20, 2, kMapped), Algorithm::TwoShot);
  EXPECT_EQ(chosen(Collective::AllReduce, 64 << 20, 2, kUnmapped), Algorithm::Ring);
  EXPECT_EQ(chosen(Collective::AllReduce, 64 << 10, 4, kUnmapped), Algorithm::HalvingDoubling);
}

TEST(SelectTest, TheOneShotEndsEarlierInLargerWorlds) {
  for (Reach reach : {kMapped, kUnmapped}) {
    const auto last_bytes = [&](uint32_t world) {
      uint64_t bytes = 0;
      while (chosen(Collective::AllReduce, bytes + 1, world, reach) == Algorithm::OneShot) ++bytes;
      return bytes;
    };
    EXPECT_GT(last_bytes(8), last_bytes(16));
    EXPECT_GT(last_bytes(16), last_bytes(32));
  }
}

// Their ranks know different sizes: a choice by bytes would differ between ranks.
TEST(SelectTest, UnevenCollectivesDoNotLookAtBytes) {
  for (Collective collective : {Collective::AllToAll, Collective::Gather, Collective::Scatter}) {
    for (Reach reach : {kMapped, kUnmapped}) {
      for (uint32_t world : {2, 100}) {
        EXPECT_EQ(chosen(collective, 0, world, reach),
                  chosen(collective, UINT64_MAX, world, reach));
      }
    }
  }
}

TEST(SelectTest, APreferenceIsTakenWhereItExistsAndIgnoredElsewhere) {
  EXPECT_EQ(choose(Collective::AllReduce, 4, 4, kMapped, Algorithm::Ring), Algorithm::Ring);
  EXPECT_EQ(choose(Collective::Broadcast, 64 << 20, 4, kMapped, Algorithm::Ring),
            chosen(Collective::Broadcast, 64 << 20, 4, kMapped));
  EXPECT_EQ(choose(Collective::AllReduce, 64 << 20, 4, kUnmapped, Algorithm::TwoShot),
            Algorithm::Ring);
}

TEST(SelectTest, MappedAlgorithmsNeedMappedPeers) {
  EXPECT_TRUE(exists(Collective::AllReduce, Algorithm::TwoShot, kMapped));
  EXPECT_FALSE(exists(Collective::AllReduce, Algorithm::TwoShot, kUnmapped));
  EXPECT_FALSE(exists(Collective::AllToAll, Algorithm::Ring, kMapped));
}

TEST(SelectTest, NamesAreThoseOfTheSetting) {
  for (const char* name : {"ring", "tree", "halving_doubling", "one_shot", "two_shot", "direct"}) {
    const std::optional<Algorithm> algorithm = algorithm_by_name(name);
    ASSERT_TRUE(algorithm.has_value()) << name;
    EXPECT_STREQ(algorithm_name(*algorithm), name);
  }
  EXPECT_FALSE(algorithm_by_name("auto").has_value());
  EXPECT_FALSE(algorithm_by_name("").has_value());
}

TEST(Select, HalvingDoublingStopsWhereItsMessagesOutgrowASlot) {
  const auto wanted = Algorithm::HalvingDoubling;
  EXPECT_EQ(choose(Collective::AllReduce, 1 << 16, 255, kUnmapped, wanted), wanted);
  EXPECT_NE(choose(Collective::AllReduce, 1 << 16, 256, kUnmapped, wanted), wanted);
  EXPECT_EQ(choose(Collective::AllReduce, 1 << 16, 4096, kUnmapped, std::nullopt), Algorithm::Ring);
}

}  // namespace
}  // namespace rdmacoll
