// What a server that comes while the job runs is to get of the buckets.
#include "csrc/ps/table/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace rdmacoll::ps::share_test {
namespace {

bool any(ServerId) { return true; }

struct Parts {
  uint32_t primary = 0;
  uint32_t backup = 0;
};
Parts parts_of(const BucketMap& map, ServerId server) {
  Parts parts;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    parts.primary += map.of(bucket).primary == server ? 1 : 0;
    parts.backup += map.of(bucket).backup == server ? 1 : 0;
  }
  return parts;
}

// What it asks for next comes true; false: it has enough.
bool ask(BucketMap& map, ServerId server, uint32_t replicas) {
  const Share share = share_of(map, server, replicas > 1, any);
  for (const auto& [primary, buckets] : share.offers) {
    for (const uint32_t bucket : buckets) {
      EXPECT_EQ(map.of(bucket).primary, primary);
      replicas > 1 ? map.set(bucket, primary, server) : map.set(bucket, server, kNoServer);
    }
  }
  for (const auto& [primary, buckets] : share.hand_over) {
    for (const uint32_t bucket : buckets) {
      EXPECT_EQ(map.of(bucket).backup, server);
      map.set(bucket, server, primary);
    }
  }
  return !share.offers.empty() || !share.hand_over.empty();
}

// Until none of them asks for more, which each does in its turn.
void settle(BucketMap& map, const std::vector<ServerId>& servers, uint32_t replicas) {
  for (int rounds = 0; rounds < 400; ++rounds) {
    bool has_asked = false;
    for (const ServerId server : servers) has_asked |= ask(map, server, replicas);
    if (!has_asked) return;
  }
  ADD_FAILURE() << "they never have enough";
}

class ShareOf : public testing::TestWithParam<std::pair<uint32_t, uint32_t>> {};

TEST_P(ShareOf, IsAsMuchAsTheOthersHave) {
  const auto [servers, replicas] = GetParam();
  BucketMap map = BucketMap::spread(servers, replicas);
  settle(map, {static_cast<ServerId>(servers)}, replicas);
  for (uint32_t server = 0; server <= servers; ++server) {
    const Parts parts = parts_of(map, static_cast<ServerId>(server));
    EXPECT_NEAR(parts.primary, kBuckets / (servers + 1), 3) << "server " << server;
    const uint32_t backups = replicas > 1 ? kBuckets / (servers + 1) : 0;
    EXPECT_NEAR(parts.backup, backups, 6) << "server " << server;
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, ShareOf,
                         testing::Values(std::pair(1u, 1u), std::pair(1u, 2u), std::pair(2u, 2u),
                                         std::pair(3u, 1u), std::pair(3u, 2u), std::pair(7u, 2u)));

TEST(Share, IsEvenForSeveralThatComeAtOnce) {
  for (const uint32_t replicas : {1u, 2u}) {
    BucketMap map = BucketMap::spread(1, replicas);
    settle(map, {1, 2, 3}, replicas);
    for (ServerId server = 0; server < 4; ++server) {
      EXPECT_NEAR(parts_of(map, server).primary, kBuckets / 4, 8) << "server " << server;
    }
  }
}

// As three were seen to come: the last one had as many buckets as is fair, but few as their
// primary, and was the backup of none that had too many.
TEST(Share, IsOfWhoHasTooManyThoughItIsNotTheirBackup) {
  BucketMap map = BucketMap::spread(4, 2);
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    if (bucket < 315) map.set(bucket, 0, bucket % 2 == 0 ? 1 : 2);
    if (bucket >= 315 && bucket < 827) {
      const ServerId primary = bucket < 571 ? 1 : 2;
      map.set(bucket, primary, bucket < 630 ? 3 : 0);
    }
    if (bucket >= 827) map.set(bucket, 3, bucket % 2 == 0 ? 1 : 2);
  }
  ASSERT_EQ(parts_of(map, 3).primary, 197u);
  ASSERT_EQ(parts_of(map, 3).backup, 315u);
  settle(map, {3}, 2);
  EXPECT_EQ(parts_of(map, 3).primary, kBuckets / 4);
  EXPECT_EQ(parts_of(map, 0).primary, kBuckets / 4);
}

TEST(Share, IsNothingForWhoHasIt) {
  const BucketMap map = BucketMap::spread(3, 2);
  const Share share = share_of(map, 1, true, any);
  EXPECT_TRUE(share.offers.empty() && share.hand_over.empty());
}

// Who is lost with its primary is no backup of it.
TEST(Share, OffersNothingToThoseOfItsHost) {
  const BucketMap map = BucketMap::spread(3, 2);
  const Share share = share_of(map, 3, true, [](ServerId primary) { return primary != 1; });
  EXPECT_FALSE(share.offers.empty());
  EXPECT_FALSE(share.offers.contains(1));
}

TEST(Share, OffersNothingOfWhatIsLost) {
  BucketMap map = BucketMap::spread(2, 1);
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) map.set(bucket, kNoServer, kNoServer);
  for (const bool keeps_backups : {false, true}) {
    const Share share = share_of(map, 2, keeps_backups, any);
    EXPECT_TRUE(share.offers.empty() && share.hand_over.empty());
  }
}

}  // namespace
}  // namespace rdmacoll::ps::share_test
