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

// All that it asks for comes true; in how many rounds.
int settle(BucketMap& map, ServerId server, uint32_t replicas) {
  for (int rounds = 0; rounds < 200; ++rounds) {
    const Share share = share_of(map, server, replicas > 1, any);
    if (share.offers.empty() && share.hand_over.empty()) return rounds;
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
  }
  ADD_FAILURE() << "it never has enough";
  return 0;
}

class ShareOf : public testing::TestWithParam<std::pair<uint32_t, uint32_t>> {};

TEST_P(ShareOf, IsAsMuchAsTheOthersHave) {
  const auto [servers, replicas] = GetParam();
  BucketMap map = BucketMap::spread(servers, replicas);
  EXPECT_GT(settle(map, static_cast<ServerId>(servers), replicas), 0);
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
