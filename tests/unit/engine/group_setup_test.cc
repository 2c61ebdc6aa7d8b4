// GroupSetup: whom a rank links to when a group is made; that a peer's block is used only if it has
// the size that all ranks agree on, and is mapped if the peer is of the same island; that otherwise
// all that was open is closed. The islands are equal on all ranks.
#include "csrc/engine/connect/group_setup.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/engine/connect/link_note.h"
#include "csrc/engine/group/members.h"
#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll::group_setup_test {
namespace {

TEST(GroupSetup, RanksMeetAtDistancesThatDouble) {
  EXPECT_EQ(first_to_meet(0, 1), std::vector<uint32_t>{});
  EXPECT_EQ(first_to_meet(1, 2), std::vector<uint32_t>{0});
  EXPECT_EQ(first_to_meet(6, 7), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5})) << "all";
  EXPECT_EQ(first_to_meet(1, 8), (std::vector<uint32_t>{0, 2, 3, 5, 7}));
  EXPECT_EQ(first_to_meet(0, 4096).size(), 23u);
}

// A rank whose peers answer each offer of a link at once.
struct Rank {
  // One that has no shared memory open has no island: "".
  Rank(uint32_t rank, uint32_t world, const std::string& island)
      : layout(Layout::within(world, config.block_bytes)),
        shm("shm", std::to_string(rank)),
        network("network", std::to_string(rank)),
        whom(first_to_meet(rank, world)) {
    shm.claim_island(island);
    for (FakeTransport* transport : {&shm, &network}) {
      transport->open_as.bytes = layout.block_bytes();
      transport->on_connect = [](const std::string& address, Deadline) {
        return static_cast<PeerId>(std::stoul(address));
      };
      transport->on_offer = [this, transport](PeerId peer, RegionId region, uint64_t note) {
        if (note == kNoNote || region == kNoRegion) return;
        const LinkNote answer{own().token, static_cast<uint16_t>(peer), 1};
        transport->report.offers.push_back({peer, answer.pack(), kRegion, "key"});
      };
    }
    setup.emplace(
        GroupSetup::begin(transports, *linker, clock, config, layout, rank, world).take());
  }
  GroupRecord own() { return GroupRecord::decode(setup->record()).take(); }
  Result<NewGroup> finish(const std::vector<std::string>& records) {
    const Status met = setup->meet(records, whom);
    EXPECT_TRUE(met.ok()) << met.message();
    for (int turn = 0; turn < 3; ++turn) linker->turn();
    return setup->finish(Deadline{0});
  }

  static constexpr RegionId kRegion = 0;  // of every block
  const Config config;
  const ManualClock clock;
  const Layout layout;
  std::byte block{};  // of every other rank, where it is mapped
  FakeTransport shm, network;
  const std::vector<uint32_t> whom;
  Transports transports{{&shm, &network}, {"id", "host"}, config, clock};
  std::unique_ptr<Linker> linker =
      std::make_unique<Linker>(transports, clock, AlarmFd::create().take());
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

TEST(GroupSetup, ABlockMustHoldWhatIsWrittenThere) {
  for (const bool is_short : {false, true}) {
    Ranks ranks({"", ""});
    Rank& rank = *ranks.all[0];
    rank.shm.open_as.bytes -= is_short ? 1 : 0;
    const Status status = rank.finish(ranks.records).status();
    EXPECT_EQ(status.ok(), !is_short) << status.message();
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
    EXPECT_TRUE(status.message().starts_with("cannot reach rank 1: it names as its block"))
        << status.message();
    EXPECT_FALSE(rank.shm.closed.empty()) << "it was open";
    rank.setup->give_up();
    EXPECT_TRUE(rank.shm.regions.empty()) << "its own is withdrawn";
  }
}

TEST(GroupSetup, WhoIsNotAnsweredSaysWhy) {
  Ranks ranks({"", ""});
  Rank& rank = *ranks.all[0];
  rank.shm.on_offer = [](PeerId, RegionId, uint64_t) {};
  const Status late = rank.finish(ranks.records).status();
  EXPECT_EQ(late.code(), StatusCode::Timeout);
  EXPECT_EQ(late.message(),
            "cannot reach rank 1: its process was met over shm, but it did not answer about the "
            "group in time");
}

TEST(GroupSetup, WhoHasLeftSaysSo) {
  Ranks ranks({"", ""});
  Rank& rank = *ranks.all[0];
  rank.shm.on_offer = [&](PeerId peer, RegionId, uint64_t note) {
    rank.shm.report.offers.push_back({peer, note, kNoRegion, ""});
  };
  const Status left = rank.finish(ranks.records).status();
  EXPECT_EQ(left.code(), StatusCode::PeerFailed);
  EXPECT_EQ(left.message(), "cannot reach rank 1: it has left the group");
}

// It had answered before it left: this rank has linked to it, and would wait for it for ever.
TEST(GroupSetup, WhoLeavesWhileItIsLinkedIsMissed) {
  Ranks ranks({"", ""});
  Rank& rank = *ranks.all[0];
  Result<NewGroup> made = rank.finish(ranks.records);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const FakeTransport::Offered& sent = rank.shm.offered.back();
  rank.shm.report.offers.push_back({.peer = sent.peer, .note = sent.note});
  rank.linker->turn();
  const Members members(rank.clock, std::move(made.value().links));
  EXPECT_EQ(members.reach(1).message(), "it has left the group");
  EXPECT_TRUE(members.is_gone(1));
}

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
    EXPECT_EQ(made.value().ranks_here, 6u);
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
  rank.setup->give_up();
  EXPECT_GE(rank.network.closed.size(), 2u) << "both were open";
  EXPECT_TRUE(rank.shm.regions.empty() && rank.network.regions.empty()) << "its own is withdrawn";

  // Who is of another island has nothing against it.
  Rank& other = *ranks.all[0];
  other.shm.on_connect = rank.shm.on_connect;
  EXPECT_TRUE(other.finish(ranks.records).ok());
}

}  // namespace
}  // namespace rdmacoll::group_setup_test
