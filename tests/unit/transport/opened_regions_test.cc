// OpenedRegions: one use of an id at a time is open, and none that was taken back before.
#include "csrc/transport/opened_regions.h"

#include <gtest/gtest.h>

namespace rdmacoll::opened_regions_test {
namespace {

constexpr RegionId kId = 3;

class Opened : public ::testing::Test {
 protected:
  Status open(Generation generation, uint64_t bytes = 64) {
    return regions_.open(kId, {bytes, generation}, "process 7").status();
  }
  OpenedRegions<OpenedRegion> regions_;
};

TEST_F(Opened, IsFoundUntilItIsClosed) {
  EXPECT_EQ(regions_.at(kId), nullptr);
  const Region region = regions_.open(kId, {64, 5}, "").take();
  EXPECT_EQ(region.id, kId);
  EXPECT_EQ(region.bytes, 64u);
  EXPECT_EQ(region.base, nullptr);
  ASSERT_NE(regions_.at(kId), nullptr);
  EXPECT_EQ(regions_.close(kId, std::nullopt), 5u);
  EXPECT_EQ(regions_.at(kId), nullptr);
  EXPECT_EQ(regions_.close(kId, std::nullopt), std::nullopt);
}

TEST_F(Opened, HoldsWhatLiesWithinItAlone) {
  ASSERT_TRUE(open(1).ok());
  const OpenedRegion& region = *regions_.at(kId);
  EXPECT_TRUE(region.holds(0, 64));
  EXPECT_TRUE(region.holds(64, 0));
  EXPECT_FALSE(region.holds(1, 64));
  EXPECT_FALSE(region.holds(UINT64_MAX, 2));
}

TEST_F(Opened, ByTheSameKeyAgainIsTheSame) {
  ASSERT_TRUE(open(5).ok());
  const OpenedRegion* first = regions_.at(kId);
  EXPECT_TRUE(open(5).ok());
  EXPECT_EQ(regions_.at(kId), first);
}

TEST_F(Opened, AnotherUseOfItsIdWaitsUntilItIsClosed) {
  ASSERT_TRUE(open(5, 64).ok());
  for (const Generation other : {4, 6}) {
    EXPECT_EQ(open(other).code(), StatusCode::InvalidArgument);
    EXPECT_NE(open(other).message().find("process 7"), std::string::npos);
  }
  EXPECT_EQ(regions_.close(kId, std::nullopt), 5u);
  EXPECT_TRUE(open(6, 128).ok());
  EXPECT_EQ(regions_.at(kId)->bytes, 128u);
}

TEST_F(Opened, IsClosedAsTheUseOfItsIdThatIsMeant) {
  ASSERT_TRUE(open(5).ok());
  EXPECT_EQ(regions_.close(kId, 4), std::nullopt);
  EXPECT_NE(regions_.at(kId), nullptr);
  EXPECT_EQ(regions_.close(kId, 5), 5u);
}

TEST_F(Opened, WhatIsOfferedIsClosedByItsUseAlone) {
  regions_.note_offer(kId, 5);
  EXPECT_TRUE(regions_.withdraw(kId, 5));
  regions_.note_offer(kId, 6);  // before who had heard of the first let go of it
  EXPECT_EQ(regions_.close(kId, std::nullopt), std::nullopt);
  EXPECT_EQ(regions_.close(kId, 5), std::nullopt);
  EXPECT_EQ(regions_.close(kId, 6), 6u);
  EXPECT_EQ(regions_.close(kId, 6), std::nullopt);
}

TEST_F(Opened, WhatWasTakenBackIsNotOpenedAnyMore) {
  EXPECT_TRUE(regions_.withdraw(kId, 5));
  for (const Generation late : {4, 5}) EXPECT_EQ(open(late).code(), StatusCode::PeerFailed);
  EXPECT_TRUE(open(6).ok());
}

TEST_F(Opened, WhatIsOpenStaysSoThoughItIsTakenBack) {
  ASSERT_TRUE(open(5).ok());
  EXPECT_FALSE(regions_.withdraw(kId, 5));
  EXPECT_TRUE(open(5).ok());
  EXPECT_TRUE(regions_.withdraw(kId, 4)) << "an earlier use, which nobody has open";
}

}  // namespace
}  // namespace rdmacoll::opened_regions_test
