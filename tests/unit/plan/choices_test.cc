// Choices: what is taken by default, by preference and by a tuned table, and that each has a plan.
#include "csrc/plan/choice/choices.h"

#include <gtest/gtest.h>

#include "csrc/plan/selection/select.h"

namespace rdmacoll::choices_test {
namespace {

constexpr Room kRoom{64 << 10, 512 << 10};
const Tuning kUntuned;

// Of so many ranks.
using Reach = Islands (*)(uint32_t world);
constexpr Reach kMapped = &Islands::together;
constexpr Reach kUnmapped = &Islands::apart;

Algorithm chosen(Collective collective, uint64_t bytes, const Islands& islands,
                 std::optional<Algorithm> preferred = std::nullopt) {
  return Choices(Tuning(), islands, kRoom, {preferred}).choose(collective, bytes);
}

Algorithm chosen(Collective collective, uint64_t bytes, uint32_t world, Reach reach,
                 std::optional<Algorithm> preferred = std::nullopt) {
  return chosen(collective, bytes, reach(world), preferred);
}

TEST(ChoicesTest, EveryChoiceExistsAndHasAPlanOfItsKind) {
  for (size_t index = 0; index < kCollectives; ++index) {
    const auto collective = static_cast<Collective>(index);
    for (Reach reach : {kMapped, kUnmapped}) {
      for (uint16_t world : {1, 2, 5, 64}) {
        for (uint64_t bytes : {uint64_t{0}, uint64_t{4}, uint64_t{1} << 16, UINT64_MAX}) {
          const Algorithm algorithm = chosen(collective, bytes, world, reach);
          EXPECT_TRUE(exists(collective, algorithm, reach(world))) << collective_name(collective);
          const Plan plan = make_plan(collective, algorithm, world - 1, reach(world), 0);
          EXPECT_EQ(plan.collective, collective);
          EXPECT_EQ(plan.algorithm, algorithm);
          EXPECT_EQ(plan.world, world);
          EXPECT_EQ(plan.rank, world - 1);
        }
      }
    }
  }
}

TEST(ChoicesTest, SmallReductionsTakeTheLatencyPath) {
  for (Reach reach : {kMapped, kUnmapped}) {
    EXPECT_EQ(chosen(Collective::AllReduce, 4, 2, reach), Algorithm::OneShot);
    EXPECT_EQ(chosen(Collective::AllReduce, 4, 16, reach), Algorithm::OneShot);
  }
}

TEST(ChoicesTest, LargeReductionsTakeTheBandwidthPath) {
  EXPECT_EQ(chosen(Collective::AllReduce, 64 << 20, 2, kMapped), Algorithm::TwoShot);
  EXPECT_EQ(chosen(Collective::AllReduce, 64 << 20, 3, kUnmapped), Algorithm::Ring);
  EXPECT_EQ(chosen(Collective::AllReduce, 64 << 10, 4, kUnmapped), Algorithm::HalvingDoubling);
}

TEST(ChoicesTest, BetweenTwoRanksTheOneShotEndsLater) {
  EXPECT_EQ(chosen(Collective::AllReduce, 64 << 10, 2, kMapped), Algorithm::OneShot);
  EXPECT_EQ(chosen(Collective::AllReduce, (64 << 10) + 1, 2, kMapped), Algorithm::TwoShot);
  EXPECT_EQ(chosen(Collective::AllReduce, 64 << 10, 3, kMapped), Algorithm::TwoShot);
  EXPECT_EQ(chosen(Collective::Reduce, 4 << 20, 2, kMapped), Algorithm::OneShot);
  EXPECT_EQ(chosen(Collective::Reduce, 4 << 20, 3, kMapped), Algorithm::TwoShot);
}

TEST(ChoicesTest, TwoRanksApartKeepALongLineFull) {
  for (Collective collective :
       {Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter}) {
    EXPECT_EQ(chosen(collective, 64 << 10, 2, kUnmapped), Algorithm::Direct);
    EXPECT_EQ(chosen(collective, 64 << 20, 2, kUnmapped), Algorithm::Direct);
    EXPECT_EQ(chosen(collective, 64 << 20, 3, kUnmapped), Algorithm::Ring);
  }
}

TEST(ChoicesTest, TheOneShotEndsEarlierInLargerWorlds) {
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

constexpr Collective kOfBlocksOfAnySize[] = {Collective::AllToAll, Collective::Gather,
                                             Collective::Scatter};

// Ranks that know different sizes take it without a look at the bytes.
TEST(ChoicesTest, BlocksOfAnySizeHaveAPlanOnEveryLayout) {
  for (Collective collective : kOfBlocksOfAnySize) {
    for (const Islands& islands :
         {kMapped(5), kUnmapped(5), Islands::of_shape("3+1").take(), kMapped(1)}) {
      EXPECT_TRUE(exists(collective, kOfAnySizes, islands)) << collective_name(collective);
      EXPECT_FALSE(needs_equal_blocks(collective, kOfAnySizes)) << collective_name(collective);
    }
    for (Reach reach : {kMapped, kUnmapped}) {
      EXPECT_EQ(chosen(collective, 0, 100, reach), kOfAnySizes);
      EXPECT_EQ(chosen(collective, UINT64_MAX, 100, reach), kOfAnySizes);
    }
  }
}

TEST(ChoicesTest, InRankOrderNoReductionTakesAnotherOrder) {
  for (Collective collective :
       {Collective::AllReduce, Collective::Reduce, Collective::ReduceScatter}) {
    for (Reach reach : {kMapped, kUnmapped}) {
      for (uint32_t world : {2, 5, 64}) {
        for (std::optional<Algorithm> named :
             {std::optional<Algorithm>(), std::optional(Algorithm::Ring),
              std::optional(Algorithm::Tree), std::optional(Algorithm::OneShot)}) {
          const Islands islands = reach(world);
          const Choices choices(kUntuned, islands, kRoom, {named, FoldOrder::Ranks});
          for (uint64_t bytes : {uint64_t{0}, uint64_t{4} << 10, uint64_t{1} << 19, UINT64_MAX}) {
            const Algorithm algorithm = choices.choose(collective, bytes);
            EXPECT_EQ(fold_order(algorithm), FoldOrder::Ranks) << algorithm_name(algorithm);
            EXPECT_TRUE(exists(collective, algorithm, reach(world))) << algorithm_name(algorithm);
          }
        }
      }
    }
  }
  // Among mapped peers it costs nothing: that is what is taken anyway.
  for (Collective collective :
       {Collective::AllReduce, Collective::Reduce, Collective::ReduceScatter}) {
    const Islands mapped = kMapped(5);
    const Choices in_order(kUntuned, mapped, kRoom, {std::nullopt, FoldOrder::Ranks});
    for (uint64_t bytes : {uint64_t{0}, uint64_t{4} << 10, uint64_t{1} << 19, UINT64_MAX}) {
      EXPECT_EQ(in_order.choose(collective, bytes), chosen(collective, bytes, 5, kMapped));
    }
  }
  // What moves no sums is as free as ever.
  const Islands unmapped = kUnmapped(4);
  const Choices choices(kUntuned, unmapped, kRoom, {Algorithm::Ring, FoldOrder::Ranks});
  EXPECT_EQ(choices.choose(Collective::AllGather, 1 << 20), Algorithm::Ring);
}

TEST(ChoicesTest, APreferenceIsTakenWhereItExistsAndIgnoredElsewhere) {
  EXPECT_EQ(chosen(Collective::AllReduce, 4, 4, kMapped, Algorithm::Ring), Algorithm::Ring);
  EXPECT_EQ(chosen(Collective::Broadcast, 64 << 20, 4, kMapped, Algorithm::Ring),
            chosen(Collective::Broadcast, 64 << 20, 4, kMapped));
  EXPECT_EQ(chosen(Collective::AllReduce, 64 << 20, 4, kUnmapped, Algorithm::TwoShot),
            Algorithm::Ring);
}

TEST(ChoicesTest, NothingIsTakenWhereItDoesNotFit) {
  const auto wanted = Algorithm::HalvingDoubling;
  EXPECT_EQ(chosen(Collective::AllReduce, 1 << 16, 255, kUnmapped, wanted), wanted);
  EXPECT_NE(chosen(Collective::AllReduce, 1 << 16, 256, kUnmapped, wanted), wanted);
  EXPECT_EQ(chosen(Collective::AllReduce, 1 << 16, 4096, kUnmapped), Algorithm::Ring);
}

const Islands kTwoHosts = Islands::of_shape("2x4").take();

TEST(ChoicesTest, SeveralHostsTakeLeadersForLatencyAndRailsForBandwidth) {
  EXPECT_EQ(chosen(Collective::AllReduce, 4, kTwoHosts), Algorithm::Leaders);
  EXPECT_EQ(chosen(Collective::AllReduce, 64 << 20, kTwoHosts), Algorithm::Rails);
  EXPECT_EQ(chosen(Collective::AllGather, 64 << 20, kTwoHosts), Algorithm::Rails);
  EXPECT_EQ(chosen(Collective::Barrier, 0, kTwoHosts), Algorithm::Leaders);
  const Islands eight_hosts = Islands::of_shape("8x8").take();
  for (Collective collective : {Collective::AllGather, Collective::ReduceScatter}) {
    EXPECT_EQ(chosen(collective, 4 << 10, eight_hosts), Algorithm::Leaders);
  }
  EXPECT_EQ(chosen(Collective::AllReduce, 1 << 20, kTwoHosts, Algorithm::Ring), Algorithm::Ring);
}

// Small blocks go together; large ones go straight, which may save their copies.
TEST(ChoicesTest, SmallBlocksTakeLeadersAndLargeOnesDirect) {
  for (const char* shape : {"2x4", "4x4", "8x8", "4+2", "64x8"}) {
    const Islands islands = Islands::of_shape(shape).take();
    const uint64_t ranks = islands.world();
    for (Collective collective : kOfBlocksOfAnySize) {
      EXPECT_EQ(chosen(collective, 64 * ranks, islands), Algorithm::Leaders)
          << collective_name(collective) << " on " << shape;
    }
    EXPECT_EQ(chosen(Collective::AllToAll, ranks << 20, islands), Algorithm::Direct) << shape;
  }
  // There the root is not to take more from others than it does anyway.
  const Islands islands = Islands::of_shape("2x8").take();
  EXPECT_EQ(chosen(Collective::Gather, 16 << 20, islands), Algorithm::Direct);
  EXPECT_EQ(chosen(Collective::Scatter, 16 << 20, islands), Algorithm::Direct);
  EXPECT_EQ(chosen(Collective::Gather, 4, islands, Algorithm::Direct), Algorithm::Direct);
}

TEST(ChoicesTest, ATableHoldsForBlocksOfOneSize) {
  const Tuning tuning = Tuning::parse(
                            "all_to_all hosts=2x4 world=8 up_to=4K leaders\n"
                            "all_to_all hosts=2x4 world=8 up_to=any direct\n"
                            "gather hosts=2x4 world=8 up_to=any leaders\n")
                            .take();
  const Choices choices(tuning, kTwoHosts, kRoom, {});
  EXPECT_EQ(choices.choose(Collective::AllToAll, 4 << 10), Algorithm::Leaders);
  EXPECT_EQ(choices.choose(Collective::AllToAll, (4 << 10) + 1), Algorithm::Direct);
  EXPECT_EQ(choices.choose(Collective::Gather, 1 << 30), Algorithm::Leaders);
}

// On four hosts of four the two send the same bytes, and leaders a little less often.
TEST(ChoicesTest, HundredsOfHostsTakeRoundsForMegabytesAndRailsForMore) {
  for (const char* shape : {"128x8", "256x8", "512x8"}) {
    const Islands islands = Islands::of_shape(shape).take();
    EXPECT_EQ(chosen(Collective::AllReduce, 1 << 20, islands), Algorithm::HalvingDoubling);
    EXPECT_EQ(chosen(Collective::AllReduce, 256 << 20, islands), Algorithm::Rails);
    EXPECT_EQ(chosen(Collective::ReduceScatter, 256 << 20, islands), Algorithm::Rails);
  }
}

TEST(ChoicesTest, RailsAreTakenWhereOthersAreHardlyQuicker) {
  const Islands islands = Islands::of_shape("8x8").take();
  const auto time_ns = [&](Algorithm algorithm) {
    return Forecast(Collective::AllGather, algorithm, islands, 1).time_ns(128 << 10, kRoom, {});
  };
  EXPECT_LT(time_ns(Algorithm::Leaders), time_ns(Algorithm::Rails));
  EXPECT_EQ(chosen(Collective::AllGather, 128 << 10, islands), Algorithm::Rails);
  EXPECT_EQ(chosen(Collective::AllGather, 4 << 10, islands), Algorithm::Leaders);
}

// On a network of short latency and slow links rails begin sooner.
TEST(ChoicesTest, WhatLinksCostDecides) {
  const auto first_of_rails = [&](const char* table) {
    const Tuning tuning = Tuning::parse(table).take();
    const Choices choices(tuning, kTwoHosts, kRoom, {});
    uint64_t bytes = 256;
    while (choices.choose(Collective::AllReduce, bytes) != Algorithm::Rails) bytes *= 2;
    return bytes;
  };
  EXPECT_LT(first_of_rails("link network latency_ns=1000 overhead_ns=100 host_gap_ps=9000"),
            first_of_rails("link network latency_ns=1000000 overhead_ns=100 host_gap_ps=10"));
}

// The bits are the same for all sizes of a layout, and still no host sends more than it must.
TEST(ChoicesTest, ByLayoutAReductionTakesRails) {
  for (Collective collective :
       {Collective::AllReduce, Collective::Reduce, Collective::ReduceScatter}) {
    for (uint64_t bytes : {uint64_t{4}, uint64_t{1} << 20}) {
      const auto by_layout = [&](const Islands& islands, std::optional<Algorithm> named = {}) {
        return Choices(Tuning(), islands, kRoom, {named, FoldOrder::Layout})
            .choose(collective, bytes);
      };
      EXPECT_EQ(by_layout(kTwoHosts), Algorithm::Rails);
      EXPECT_EQ(by_layout(kTwoHosts, Algorithm::Ring), Algorithm::Rails);
      EXPECT_EQ(fold_order(by_layout(Islands::together(4))), FoldOrder::Ranks);
      EXPECT_EQ(fold_order(by_layout(Islands::apart(4))), FoldOrder::Ranks);
    }
  }
}

class TunedTest : public ::testing::Test {
 protected:
  static Algorithm tuned(Collective collective, uint64_t bytes, uint32_t world, Reach reach,
                         std::optional<Algorithm> preferred = std::nullopt) {
    auto tuning = Tuning::parse(
        "all_reduce mapped world=2 up_to=1000 tree\n"
        "all_reduce mapped world=2 up_to=2K ring\n"
        "all_reduce mapped world=2 up_to=any one_shot\n");
    EXPECT_TRUE(tuning.ok()) << tuning.status().message();
    return Choices(tuning.value(), reach(world), kRoom, {preferred}).choose(collective, bytes);
  }
};

TEST_F(TunedTest, RowsHoldUpToTheirBytes) {
  const auto take = [](uint64_t bytes) { return tuned(Collective::AllReduce, bytes, 2, kMapped); };
  EXPECT_EQ(take(0), Algorithm::Tree);
  EXPECT_EQ(take(1000), Algorithm::Tree);
  EXPECT_EQ(take(1001), Algorithm::Ring);
  EXPECT_EQ(take(2048), Algorithm::Ring);
  EXPECT_EQ(take(2049), Algorithm::OneShot);
  EXPECT_EQ(take(UINT64_MAX), Algorithm::OneShot);
}

TEST_F(TunedTest, WhatTheTableDoesNotNameKeepsTheDefaults) {
  for (const uint64_t bytes : {uint64_t{4}, uint64_t{1} << 20}) {
    EXPECT_EQ(tuned(Collective::AllReduce, bytes, 3, kMapped),
              chosen(Collective::AllReduce, bytes, 3, kMapped));
    EXPECT_EQ(tuned(Collective::AllReduce, bytes, 2, kUnmapped),
              chosen(Collective::AllReduce, bytes, 2, kUnmapped));
    EXPECT_EQ(tuned(Collective::Reduce, bytes, 2, kMapped),
              chosen(Collective::Reduce, bytes, 2, kMapped));
  }
}

TEST_F(TunedTest, APreferenceIsTakenBeforeTheTable) {
  EXPECT_EQ(tuned(Collective::AllReduce, 4, 2, kMapped, Algorithm::TwoShot), Algorithm::TwoShot);
  EXPECT_EQ(tuned(Collective::AllReduce, 4, 2, kMapped, Algorithm::Dissemination), Algorithm::Tree);
}

}  // namespace
}  // namespace rdmacoll::choices_test
