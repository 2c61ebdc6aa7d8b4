// Errands: what is left for the driver is seen at its next poll, and taken once.
#include "csrc/transport/errands.h"

#include <gtest/gtest.h>

namespace rdmacoll::errands_test {
namespace {

TEST(Errands, AreTakenOnce) {
  Errands errands;
  EXPECT_FALSE(errands.take());
  errands.note();
  EXPECT_TRUE(errands.is_time_to_look());
  EXPECT_TRUE(errands.take());
  EXPECT_FALSE(errands.take());
}

TEST(Errands, LetTheClockBeLookedAtNowAndThen) {
  Errands errands;
  int looks = 0;
  for (int i = 0; i < 640; ++i) looks += errands.is_time_to_look();
  EXPECT_EQ(looks, 10);
  EXPECT_TRUE(errands.is_time_again(1'000, 100));
  EXPECT_FALSE(errands.is_time_again(1'099, 100));
  EXPECT_TRUE(errands.is_time_again(1'100, 100));
}

TEST(Errands, AClosedRegionIsSaidToItsOwner) {
  Errands errands;
  errands.say_closed(7, 3, 5);
  ASSERT_EQ(errands.notices.size(), 1u);
  const Notice& notice = errands.notices[0];
  EXPECT_EQ(notice.kind, Notice::Kind::Closed);
  EXPECT_EQ(notice.peer, 7u);
  EXPECT_EQ(notice.region, 3u);
  EXPECT_EQ(notice.generation, 5u);
  EXPECT_TRUE(errands.take());
}

TEST(Errands, AnOfferIsSaidWithItsNote) {
  Errands errands;
  errands.say_offered(7, 3, 5, 99);
  errands.say_offered(7, kNoRegion, 0, 100);
  ASSERT_EQ(errands.notices.size(), 2u);
  EXPECT_EQ(errands.notices[0].kind, Notice::Kind::Offered);
  EXPECT_EQ(errands.notices[0].note, 99u);
  EXPECT_EQ(errands.notices[1].region, kNoRegion);
  EXPECT_TRUE(errands.take());
}

TEST(Errands, AReleaseIsSaidToReadersOnlyIfTheRegionIsTakenBack) {
  for (const Release how : {Release::Keep, Release::Withdraw}) {
    Errands errands;
    Lease lease{.generation = 5};
    lease.offered(1);
    lease.offered(2);
    errands.release(3, lease, how);
    EXPECT_TRUE(lease.released);
    EXPECT_EQ(errands.released, std::vector<RegionId>{3});
    EXPECT_TRUE(errands.take());
    ASSERT_EQ(errands.notices.size(), how == Release::Withdraw ? 2u : 0u);
    for (const Notice& notice : errands.notices) {
      EXPECT_EQ(notice.kind, Notice::Kind::Withdrawn);
      EXPECT_EQ(notice.region, 3u);
      EXPECT_EQ(notice.generation, 5u);
    }
  }
}

}  // namespace
}  // namespace rdmacoll::errands_test
