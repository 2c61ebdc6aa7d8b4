// Regions of a process, that all its transports may reach: their ids, and who cannot reach one.
#include <gtest/gtest.h>

#include "tests/unit/engine/process_of_fakes.h"

namespace rdmacoll::transports_regions_test {
namespace {

TEST(Transports, ARegionIsRegisteredWithAllUnderOneId) {
  Process mine("a");
  const Region first = mine.transports.create_region(4096).take();
  const Region second = mine.transports.create_region(64).take();
  EXPECT_NE(first.id, second.id);
  EXPECT_EQ(mine.shm.regions.at(first.id), mine.verbs.regions.at(first.id));
  EXPECT_EQ(mine.shm.regions.at(first.id)->data(), first.base);
  const std::string key = mine.transports.region_key(second.id);
  mine.transports.release_region(first.id, Release::Keep);
  EXPECT_EQ(mine.shm.regions.size() + mine.verbs.regions.size(), 2u);
  EXPECT_FALSE(mine.transports.create_region(0).ok());

  Process other("a");
  const Path path{.transport = &other.verbs};
  ASSERT_TRUE(other.transports.open_region(path, key, Deadline{0}).ok());
  EXPECT_EQ(other.verbs.opened, std::vector<std::string>{"verbs key " + std::to_string(second.id)});
  EXPECT_TRUE(other.shm.opened.empty());
}

TEST(Transports, AnIdIsReusedOnceEveryTransportIsDoneWithIt) {
  Process mine("a");
  const Region first = mine.transports.create_region(64).take();
  const Region second = mine.transports.create_region(64).take();
  mine.transports.release_region(second.id, Release::Keep);
  mine.transports.release_region(first.id, Release::Keep);
  mine.verbs.held.insert(second.id);
  EXPECT_EQ(mine.transports.create_region(64).value().id, first.id);
  EXPECT_EQ(mine.transports.create_region(64).value().id, second.id + 1) << "a new one";
  mine.verbs.held.clear();
  EXPECT_EQ(mine.transports.create_region(64).value().id, second.id);
}

TEST(Transports, WhenAllIdsAreTakenTheErrorCountsThoseThatPeersHold) {
  Process mine("a");
  for (uint32_t i = 0; i < kMaxRegions; ++i) {
    const Region region = mine.transports.create_region(64).take();
    mine.shm.held.insert(region.id);
    mine.transports.release_region(
        region.id, Release::Keep);  // each has a descriptor, of which there are fewer
  }
  const Status status = mine.transports.create_region(64).status();
  EXPECT_EQ(status.code(), StatusCode::Unsupported);
  const std::string held = "counting " + std::to_string(kMaxRegions) + " that are destroyed";
  EXPECT_TRUE(says(status, {held.c_str()})) << status.message();
  mine.transports.drive_by([&] { mine.shm.held.clear(); });
  EXPECT_TRUE(mine.transports.create_region(64).ok()) << "an id that comes free late is waited for";
}

TEST(Transports, AnIdThatNoTransportTookIsFree) {
  Process mine("a");
  mine.shm.on_register = mine.verbs.on_register = Status(StatusCode::System, "no memory");
  for (uint32_t i = 0; i <= kMaxRegions; ++i) {
    ASSERT_EQ(mine.transports.create_region(64).status().message(), "no memory");
  }
}

// As when RLIMIT_MEMLOCK is too low.
TEST(Transports, MemoryThatCannotBeRegisteredIsAnErrorWhereItIsNeeded) {
  Process owner("a");
  owner.verbs.on_register = Status(StatusCode::System, "ulimit -l is 64 KiB");
  const Region region = owner.transports.create_region(4096).take();
  const std::string key = owner.transports.region_key(region.id);
  const Path by_shm{.transport = &owner.shm};
  const Path by_verbs{.transport = &owner.verbs};
  EXPECT_TRUE(owner.transports.offer_region(by_shm, region.id, kNoNote).ok());
  EXPECT_EQ(owner.transports.offer_region(by_verbs, region.id, kNoNote).message(),
            "ulimit -l is 64 KiB");

  Process other("b");
  EXPECT_TRUE(other.transports.open_region({.transport = &other.shm}, key, Deadline{0}).ok());
  const Status status =
      other.transports.open_region({.transport = &other.verbs}, key, Deadline{0}).status();
  EXPECT_EQ(status.code(), StatusCode::Unsupported);
  EXPECT_TRUE(says(status, {"verbs", "ulimit -l is 64 KiB"})) << status.message();
  EXPECT_TRUE(other.verbs.opened.empty());
  owner.transports.release_region(region.id, Release::Keep);
  EXPECT_TRUE(owner.shm.regions.empty());

  owner.shm.on_register = Status(StatusCode::System, "no memory");
  EXPECT_EQ(owner.transports.create_region(4096).status().message(), "no memory")
      << "memory that nothing can reach is of no use to anybody";
}

}  // namespace
}  // namespace rdmacoll::transports_regions_test
