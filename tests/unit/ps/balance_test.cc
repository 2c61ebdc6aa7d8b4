// Which buckets are handed over so that servers have alike much to do.
#include "csrc/ps/client/balance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace rdmacoll::ps::balance_test {
namespace {

BucketMap changed(const BucketMap& map, const Loads& loads) {
  BucketMap next = map;
  for (const auto& [server, buckets] : balance(map, loads)) {
    for (const uint32_t bucket : buckets) {
      const BucketMap::Place place = next.of(bucket);
      EXPECT_EQ(place.primary, server);
      next.set(bucket, place.backup, place.primary);
    }
  }
  return next;
}

TEST(Balance, TakesHotBucketsOffTheBusiestServer) {
  for (const uint32_t servers : {2u, 3u, 4u, 7u}) {
    const BucketMap map = BucketMap::spread(servers, 2);
    std::mt19937 draw(servers);
    Loads loads{};
    // As many requests as ids that are asked for by Zipf's law bring to the buckets.
    for (uint32_t id = 1; id < 100'000; ++id) {
      loads[draw() % kBuckets] += static_cast<uint64_t>(1e6 / std::pow(id, 0.8));
    }
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      if (map.of(bucket).primary == 0) loads[bucket] *= 3;
    }
    const double before = imbalance(map, loads), after = imbalance(changed(map, loads), loads);
    EXPECT_GT(before, 1.4) << servers;
    EXPECT_LT(after, 1.1) << servers;
  }
}

TEST(Balance, LeavesWhatIsWell) {
  const BucketMap map = BucketMap::spread(4, 2);
  Loads loads{};
  EXPECT_TRUE(balance(map, loads).empty());
  EXPECT_EQ(imbalance(map, loads), 1);
  loads.fill(1000);
  EXPECT_TRUE(balance(map, loads).empty());
  EXPECT_EQ(imbalance(map, loads), 1);
}

// One bucket is hotter than all others: to move it would only move what is too much.
TEST(Balance, LeavesOneThatIsTooHotAndTakesTheOthersAway) {
  const BucketMap map = BucketMap::spread(2, 2);
  Loads loads{};
  loads.fill(1000);
  const ServerId busy = map.of(5).primary;
  loads[5] = 5'000'000;
  const BucketMap next = changed(map, loads);
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    if (bucket == 5) continue;
    EXPECT_EQ(next.of(bucket).primary == busy, false) << bucket;
  }
  EXPECT_EQ(next.of(5).primary, busy);
}

TEST(Balance, MovesNothingWithoutBackups) {
  const BucketMap map = BucketMap::spread(3, 1);
  Loads loads{};
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) loads[bucket] = bucket;
  EXPECT_TRUE(balance(map, loads).empty());
}

}  // namespace
}  // namespace rdmacoll::ps::balance_test
