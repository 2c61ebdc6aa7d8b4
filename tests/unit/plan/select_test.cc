// Select: what exists, and under which names.
#include "csrc/plan/selection/select.h"

#include <gtest/gtest.h>

namespace rdmacoll::select_test {
namespace {

const auto kMapped = &Islands::together;
const auto kUnmapped = &Islands::apart;
const Islands kTwoHosts = Islands::of_shape("3+1").take();

TEST(SelectTest, MappedAlgorithmsNeedMappedPeers) {
  EXPECT_TRUE(exists(Collective::AllReduce, Algorithm::TwoShot, kMapped(2)));
  EXPECT_FALSE(exists(Collective::AllReduce, Algorithm::TwoShot, kUnmapped(2)));
  EXPECT_FALSE(exists(Collective::AllToAll, Algorithm::Ring, kMapped(2)));
}

TEST(SelectTest, NamesAreThoseOfTheSetting) {
  for (const char* name :
       {"ring", "tree", "halving_doubling", "one_shot", "two_shot", "direct", "rails", "leaders"}) {
    const std::optional<Algorithm> algorithm = algorithm_by_name(name);
    ASSERT_TRUE(algorithm.has_value()) << name;
    EXPECT_STREQ(algorithm_name(*algorithm), name);
    EXPECT_TRUE(check_algorithm("RDMACOLL_ALGO", name).ok());
  }
  EXPECT_TRUE(check_algorithm("RDMACOLL_ALGO", "auto").ok());
  const Status refused = check_algorithm("RDMACOLL_ALGO", "rings");
  EXPECT_EQ(refused.code(), StatusCode::InvalidArgument);
  EXPECT_EQ(refused.message(),
            "RDMACOLL_ALGO='rings' is not valid; use one of auto, one_shot, two_shot, "
            "halving_doubling, direct, ring, tree, rails, leaders or unset it");
  EXPECT_FALSE(check_algorithm("RDMACOLL_ALGO", "dissemination").ok());
  EXPECT_FALSE(algorithm_by_name("auto").has_value());
  EXPECT_FALSE(algorithm_by_name("").has_value());
  EXPECT_EQ(collective_by_name("all_gather"), Collective::AllGather);
  EXPECT_FALSE(collective_by_name("allgather").has_value());
}

TEST(SelectTest, HalvingDoublingStopsWhereItsMessagesOutgrowASlot) {
  EXPECT_TRUE(exists(Collective::AllReduce, Algorithm::HalvingDoubling, kUnmapped(255)));
  EXPECT_FALSE(exists(Collective::AllReduce, Algorithm::HalvingDoubling, kUnmapped(256)));
}

TEST(SelectTest, PlansOfTwoLevelsExistForThousandsOfHosts) {
  const Islands islands = Islands::of_shape("2048x8").take();
  EXPECT_TRUE(exists(Collective::AllReduce, Algorithm::HalvingDoubling, islands));
  for (Collective collective : {Collective::AllReduce, Collective::Reduce, Collective::Broadcast,
                                Collective::AllGather, Collective::ReduceScatter}) {
    EXPECT_TRUE(exists(collective, Algorithm::Rails, islands));
    EXPECT_FALSE(make_plan(collective, Algorithm::Rails, 9, islands, 1).steps.empty());
  }
}

TEST(SelectTest, LeadersStopWhereAnIslandsBlocksOutgrowASlot) {
  for (Collective collective : {Collective::AllGather, Collective::ReduceScatter}) {
    EXPECT_TRUE(exists(collective, Algorithm::Leaders, Islands::of_shape("2x64").take()));
    EXPECT_FALSE(exists(collective, Algorithm::Leaders, Islands::of_shape("1+65").take()));
  }
  EXPECT_TRUE(exists(Collective::AllReduce, Algorithm::Leaders, Islands::of_shape("1+65").take()));
}

TEST(SelectTest, AllThatExistsIsListedOnce) {
  const std::vector<Algorithm> mapped = {Algorithm::Direct, Algorithm::Ring};
  EXPECT_EQ(algorithms_of(Collective::AllGather, kMapped(2)), mapped);
  const std::vector<Algorithm> unmapped = {Algorithm::OneShot, Algorithm::Direct, Algorithm::Ring,
                                           Algorithm::Tree};
  EXPECT_EQ(algorithms_of(Collective::AllReduce, kUnmapped(4096)), unmapped);
  EXPECT_EQ(algorithms_of(Collective::Barrier, kMapped(2)).size(), 1u);
  const std::vector<Algorithm> of_two_hosts = {Algorithm::Direct, Algorithm::Ring, Algorithm::Rails,
                                               Algorithm::Leaders};
  EXPECT_EQ(algorithms_of(Collective::AllGather, kTwoHosts), of_two_hosts);
  EXPECT_TRUE(exists(Collective::Barrier, Algorithm::Leaders, kTwoHosts));
}

}  // namespace
}  // namespace rdmacoll::select_test
