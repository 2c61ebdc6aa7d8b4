// Select: what exists, and under which names.
#include "csrc/plan/selection/select.h"

#include <gtest/gtest.h>

namespace rdmacoll {
namespace {

constexpr Reach kMapped{true};
constexpr Reach kUnmapped{false};

TEST(SelectTest, MappedAlgorithmsNeedMappedPeers) {
  EXPECT_TRUE(exists(Collective::AllReduce, Algorithm::TwoShot, 2, kMapped));
  EXPECT_FALSE(exists(Collective::AllReduce, Algorithm::TwoShot, 2, kUnmapped));
  EXPECT_FALSE(exists(Collective::AllToAll, Algorithm::Ring, 2, kMapped));
}

TEST(SelectTest, NamesAreThoseOfTheSetting) {
  for (const char* name : {"ring", "tree", "halving_doubling", "one_shot", "two_shot", "direct"}) {
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
            "halving_doubling, direct, ring, tree or unset it");
  EXPECT_FALSE(check_algorithm("RDMACOLL_ALGO", "dissemination").ok());
  EXPECT_FALSE(algorithm_by_name("auto").has_value());
  EXPECT_FALSE(algorithm_by_name("").has_value());
  EXPECT_EQ(collective_by_name("all_gather"), Collective::AllGather);
  EXPECT_FALSE(collective_by_name("allgather").has_value());
}

TEST(SelectTest, HalvingDoublingStopsWhereItsMessagesOutgrowASlot) {
  EXPECT_TRUE(exists(Collective::AllReduce, Algorithm::HalvingDoubling, 255, kUnmapped));
  EXPECT_FALSE(exists(Collective::AllReduce, Algorithm::HalvingDoubling, 256, kUnmapped));
}

TEST(SelectTest, AllThatExistsIsListedOnce) {
  const std::vector<Algorithm> mapped = {Algorithm::Direct, Algorithm::Ring};
  EXPECT_EQ(algorithms_of(Collective::AllGather, 2, kMapped), mapped);
  const std::vector<Algorithm> unmapped = {Algorithm::OneShot, Algorithm::Direct, Algorithm::Ring,
                                           Algorithm::Tree};
  EXPECT_EQ(algorithms_of(Collective::AllReduce, 4096, kUnmapped), unmapped);
  EXPECT_EQ(algorithms_of(Collective::Barrier, 2, kMapped).size(), 1u);
}

}  // namespace
}  // namespace rdmacoll
