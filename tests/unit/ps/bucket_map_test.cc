// The first map: every server is a primary of as much, and who has its backups is on another host.
#include "csrc/ps/table/bucket_map.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/unit/ps/near_job.h"

namespace rdmacoll::ps::bucket_map_test {
namespace {

struct Counts {
  std::map<ServerId, uint32_t> primaries{};
  std::map<ServerId, uint32_t> backups{};
  uint32_t near = 0;  // buckets that one host has alone
};

Counts count(const BucketMap& map, const std::vector<uint32_t>& hosts) {
  Counts counts;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const BucketMap::Place& place = map.of(bucket);
    EXPECT_NE(place.primary, place.backup);
    ++counts.primaries[place.primary];
    ++counts.backups[place.backup];
    if (hosts[place.primary] == hosts[place.backup]) ++counts.near;
  }
  return counts;
}

TEST(BucketMap, HasBackupsOnOtherHosts) {
  const std::vector<std::vector<uint32_t>> spreads = {
      {0, 1}, {0, 1, 0, 1}, {0, 0, 1, 1}, {0, 1, 2, 0, 1, 2}, {0, 1, 0}};
  for (const auto& hosts : spreads) {
    const auto servers = static_cast<uint32_t>(hosts.size());
    const Counts counts = count(BucketMap::spread(servers, 2, hosts), hosts);
    EXPECT_EQ(counts.near, 0u);
    EXPECT_EQ(counts.primaries.size(), servers);
    for (const auto& [server, buckets] : counts.primaries)
      EXPECT_NEAR(buckets, kBuckets / servers, 1);
  }
}

TEST(BucketMap, HasAsManyBackupsEverywhereWhereHostsAreAlike) {
  for (const auto& hosts : std::vector<std::vector<uint32_t>>{{0, 1, 2}, {0, 1, 0, 1}, {3, 3, 3}}) {
    const auto servers = static_cast<uint32_t>(hosts.size());
    const Counts counts = count(BucketMap::spread(servers, 2, hosts), hosts);
    for (const auto& [server, buckets] : counts.backups)
      EXPECT_NEAR(buckets, kBuckets / servers, 2);
    EXPECT_EQ(counts.near > 0, hosts[0] == 3) << "all are on one host";
  }
}

TEST(BucketMap, TakesEachServerForAHostOfItsOwnIfNobodySaysIt) {
  EXPECT_EQ(BucketMap::spread(4, 2), BucketMap::spread(4, 2, {0, 1, 2, 3}));
  EXPECT_EQ(BucketMap::spread(1, 2, {0}).of(0).backup, kNoServer);
}

// Servers 0 and 2 are on one host, 1 and 3 on another one.
TEST(BucketMap, GetsNewBackupsOnOtherHostsToo) {
  NearJob job(4, 2);
  job.set_near(0, 2);
  job.set_near(1, 3);
  ASSERT_TRUE(job.client().create(1, {.name = "w", .elements = 8}).ok());
  const BucketMap before = job.map();
  job.kill(1);
  job.settle();
  uint32_t fresh = 0;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const BucketMap::Place& place = job.map().of(bucket);
    if (place == before.of(bucket)) continue;
    ++fresh;
    EXPECT_NE(place.primary % 2, place.backup % 2) << "bucket " << bucket;
  }
  EXPECT_GT(fresh, kBuckets / 4);
}

}  // namespace
}  // namespace rdmacoll::ps::bucket_map_test
