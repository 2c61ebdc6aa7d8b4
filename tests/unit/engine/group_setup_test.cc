// GroupSetup: a peer's block is used only if it has the size that all ranks agree on, and is mapped
// if the peer is of the same island. Otherwise all that was open is closed. The islands are equal
// on all ranks.
#include "csrc/engine/connect/group_setup.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll {
namespace {

Status finish_with_a_block_of(uint64_t missing_bytes) {
  const Config config;
  const ManualClock clock;
  FakeTransport fake("shm", "address");
  Transports transports({&fake}, {"host", "host"}, config, clock);
  const Layout layout = Layout::within(2, config.block_bytes);
  fake.open_as.bytes = layout.total_bytes() - missing_bytes;
  GroupSetup setup = GroupSetup::begin(transports, clock, config, layout, 0, 2).take();
  auto theirs = GroupRecord::decode(setup.record());
  theirs.value().rank = 1;
  const Deadline deadline = Deadline::after_ms(clock, 1);
  const Status met = setup.meet({setup.record(), theirs.value().encode()}, deadline);
  EXPECT_TRUE(met.ok()) << met.message();
  const Status finished = setup.finish(deadline).status();
  if (finished.ok()) return finished;
  EXPECT_TRUE(fake.closed.empty());
  setup.give_up();
  EXPECT_EQ(fake.closed, std::vector<RegionId>{theirs.value().region}) << "it was open";
  EXPECT_TRUE(fake.regions.empty());
  return finished;
}

TEST(GroupSetup, ABlockMustHoldWhatIsWrittenThere) {
  EXPECT_TRUE(finish_with_a_block_of(0).ok());
  const Status status = finish_with_a_block_of(1);
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
  EXPECT_TRUE(status.message().starts_with("rank 1 names as its block")) << status.message();
}

// A rank that meets the others in all that they are asked.
struct Rank {
  // One that has no shared memory open has no island: "".
  Rank(uint32_t rank, uint32_t world, const std::string& island)
      : layout(Layout::within(world, config.block_bytes)) {
    shm.claim_island(island);
    network.open_as.bytes = shm.open_as.bytes = layout.total_bytes();
    setup.emplace(GroupSetup::begin(transports, clock, config, layout, rank, world).take());
  }
  Result<NewGroup> finish(const std::vector<std::string>& records) {
    const Deadline deadline = Deadline::after_ms(clock, 1);
    const Status met = setup->meet(records, deadline);
    EXPECT_TRUE(met.ok()) << met.message();
    return setup->finish(deadline);
  }

  const Config config;
  const ManualClock clock;
  const Layout layout;
  std::byte block{};  // of every other rank, where it is mapped
  FakeTransport shm{"shm", "address"}, network{"network", "address"};
  Transports transports{{&shm, &network}, {"id", "host"}, config, clock};
  std::optional<GroupSetup> setup;
};

struct Ranks {
  explicit Ranks(const std::vector<std::string>& islands) {
    const auto world = static_cast<uint32_t>(islands.size());
    for (uint32_t r = 0; r < world; ++r) {
      all.push_back(std::make_unique<Rank>(r, world, islands[r]));
      records.push_back(all.back()->setup->record());
    }
  }
  std::vector<std::unique_ptr<Rank>> all;
  std::vector<std::string> records;
};

std::vector<uint16_t> by_rank(const Islands& islands) {
  std::vector<uint16_t> all;
  for (uint32_t r = 0; r < islands.world(); ++r) all.push_back(islands.of(r));
  return all;
}

// Whatever a rank itself maps: here all of them.
TEST(GroupSetup, IslandsAreEqualOnAllRanks) {
  Ranks ranks({"x", "", "y", "x", "", "y"});
  for (const auto& rank : ranks.all) {
    rank->shm.open_as.base = &rank->block;
    Result<NewGroup> made = rank->finish(ranks.records);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(by_rank(made.value().islands), (std::vector<uint16_t>{0, 1, 2, 0, 3, 2}));
  }
}

TEST(GroupSetup, WithoutSharedMemoryEveryRankIsAnIsland) {
  Ranks ranks({"", "", ""});
  for (const auto& rank : ranks.all) {
    Result<NewGroup> made = rank->finish(ranks.records);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(by_rank(made.value().islands), (std::vector<uint16_t>{0, 1, 2}));
  }
}

TEST(GroupSetup, ARankAloneIsAnIsland) {
  Ranks ranks({""});
  EXPECT_TRUE(ranks.all[0]->finish(ranks.records).value().islands.all_mapped());
}

// The ranks beside them count on it, so a slower path for this pair alone is no way out.
TEST(GroupSetup, TwoOfAnIslandThatDoNotMapEachOtherAreAnError) {
  Ranks ranks({"y", "x", "x"});
  Rank& rank = *ranks.all[1];
  rank.shm.on_connect = [](const std::string&, Deadline) {
    return Status(StatusCode::Unsupported, "the way is blocked");
  };
  const Status status = rank.finish(ranks.records).status();
  EXPECT_EQ(status.code(), StatusCode::Unsupported);
  for (const char* word : {"rank 1 and rank 2 are of one host", "rank 2 is reached over network",
                           "(same host, but shm: the way is blocked)", "RDMACOLL_HOST_ID",
                           "RDMACOLL_TRANSPORT to network"}) {
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
  EXPECT_TRUE(rank.network.closed.empty());
  rank.setup->give_up();
  EXPECT_EQ(rank.network.closed.size(), 2u) << "both were open";
  EXPECT_TRUE(rank.shm.regions.empty() && rank.network.regions.empty()) << "its own is withdrawn";

  // Who is of another island has nothing against it.
  Rank& other = *ranks.all[0];
  other.shm.on_connect = rank.shm.on_connect;
  EXPECT_TRUE(other.finish(ranks.records).ok());
}

}  // namespace
}  // namespace rdmacoll
