// The largest groups: how many ranks one may have, and that a rank of it is made from the records
// of all, links to few, and needs no memory for the rest. The other ranks are their records alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/job_key.h"
#include "csrc/engine/connect/appended_records.h"
#include "csrc/engine/connect/group_setup.h"
#include "csrc/engine/connect/link_note.h"
#include "csrc/engine/connect/sealed_bootstrap.h"
#include "csrc/engine/endpoint.h"
#include "csrc/engine/shrinking.h"
#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll::largest_group_test {
namespace {

constexpr uint32_t kRank = kMaxWorld - 1;
constexpr uint32_t kHosts = 2048;
const Config kConfig;

// Nobody is there: what a rank gets is what the test says.
struct Said final : Bootstrap {
  using Answer = std::function<Result<std::vector<std::string>>(const std::string& mine)>;
  explicit Said(Answer answer) : answer(std::move(answer)) {}
  Result<std::vector<std::string>> all_gather(const std::string& mine, Deadline) override {
    return answer(mine);
  }
  void decline(const std::string&) override {}
  const Answer answer;
};

// One rank, whose peers answer each offer of a link at once.
struct Rank {
  explicit Rank(uint32_t world)
      : world(world), layout(Layout::within(world, kConfig.block_bytes)), network("network", "") {
    network.open_as.base = &block;
    network.open_as.bytes = layout.block_bytes();
    network.on_connect = [](const std::string& address, Deadline) {
      return static_cast<PeerId>(std::stoul(address));
    };
    network.on_offer = [this](PeerId peer, RegionId region, uint64_t note) {
      if (note == kNoNote || region == kNoRegion) return;
      EXPECT_EQ(LinkNote::unpack(note).rank, world_rank());
      const LinkNote answer{token, static_cast<uint16_t>(peer), 1};
      network.report.offers.push_back({peer, answer.pack(), 0, "key"});
    };
    setup.emplace(
        GroupSetup::begin(transports, *linker, clock, kConfig, layout, world - 1, world).take());
    token = GroupRecord::decode(setup->record()).value().token;
  }
  uint32_t world_rank() const { return world - 1; }
  // Of all ranks, as if they were on so many hosts.
  std::vector<std::string> records(uint32_t hosts) const {
    std::vector<std::string> all;
    GroupRecord record = GroupRecord::decode(setup->record()).take();
    for (record.rank = 0; record.rank < world; ++record.rank) {
      const std::string host = std::to_string(record.rank * uint64_t{hosts} / world);
      FakeTransport theirs("network", std::to_string(record.rank));
      theirs.claim_island("island " + host);
      record.address = Transports({&theirs}, {"id", host}, kConfig, clock).local_address();
      all.push_back(record.encode());
    }
    return all;
  }

  const uint32_t world;
  const ManualClock clock;
  const Layout layout;
  std::byte block{};  // of every other rank
  FakeTransport network;
  Transports transports{{&network}, {"id", "host"}, kConfig, clock};
  std::unique_ptr<Linker> linker =
      std::make_unique<Linker>(transports, clock, AlarmFd::create().take());
  std::optional<GroupSetup> setup;
  uint32_t token = 0;
};

TEST(LargestGroup, AGroupMayHaveAsManyRanksAsAPlan) {
  const auto endpoint = Endpoint::open(Config()).take();
  Said nobody([](const std::string&) { return Status(StatusCode::Timeout, "nobody came"); });
  const auto made = [&](uint32_t size) {
    return endpoint->create_communicator(0, static_cast<int>(size), nobody, 1000).status();
  };
  EXPECT_EQ(made(16384).message(), "nobody came") << "it has asked for the others' records";
  const Status refused = made(16385);
  EXPECT_EQ(refused.code(), StatusCode::InvalidArgument);
  EXPECT_EQ(refused.message(), "size=16385 is not possible; a group has 1 to 16384 ranks");
}

TEST(LargestGroup, ARankLinksToFewAndToOthersOnDemand) {
  Rank rank(kMaxWorld);
  const std::vector<uint32_t> whom = first_to_meet(kRank, kMaxWorld);
  EXPECT_EQ(whom.size(), 27u);
  const Status met = rank.setup->meet(rank.records(kHosts), whom);
  ASSERT_TRUE(met.ok()) << met.message();
  for (int turn = 0; turn < 3; ++turn) rank.linker->turn();
  Result<NewGroup> made = rank.setup->finish(Deadline{0});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value().islands.shape(), "2048x8");
  PeerLinks& links = *made.value().links;
  EXPECT_EQ(links.count(), 27u);
  constexpr uint32_t kFar = 5000;
  EXPECT_EQ(links.at(kFar), nullptr);
  links.want(kFar);
  for (int turn = 0; turn < 3; ++turn) rank.linker->turn();
  ASSERT_NE(links.at(kFar), nullptr);
  EXPECT_EQ(links.at(kFar)->link.peer, kFar);
}

TEST(LargestGroup, AnIslandHasAsManyRanksAsMayMeet) {
  for (const uint32_t size : {kMaxIsland, kMaxIsland + 1}) {
    Rank rank(size);
    const Status met = rank.setup->meet(rank.records(1), {});
    EXPECT_EQ(met.ok(), size == kMaxIsland) << met.message();
    rank.setup->give_up();
    if (met.ok()) continue;
    EXPECT_EQ(met.code(), StatusCode::Unsupported);
    EXPECT_TRUE(met.message().starts_with("4097 ranks of the group say that they are on one host"))
        << met.message();
  }
}

// Slots and stages keep within their bounds, and a stage holds a line for each rank of an island.
TEST(LargestGroup, ItsBlockIsNoLargerThanThatOfAFewThousand) {
  for (const uint64_t block_bytes : {uint64_t{64} << 10, uint64_t{8} << 20, uint64_t{1} << 30}) {
    for (const uint32_t world : {1u, 2u, 64u, 1000u, 4096u, 4097u, 8192u, 8193u, kMaxWorld}) {
      const Layout layout = Layout::within(world, block_bytes);
      EXPECT_GE(layout.slot_bytes(), kSlotBytesMin);
      EXPECT_LE(layout.slot_bytes(), kSlotBytesMax);
      EXPECT_GE(layout.stage_bytes(), std::min(world, kMaxIsland) * kLineBytes);
      EXPECT_LE(layout.stage_bytes(), kStageBytesMax);
    }
    const Layout few = Layout::within(4096, block_bytes);
    const Layout all = Layout::within(kMaxWorld, block_bytes);
    EXPECT_LE(all.block_bytes(), few.block_bytes() + (1 + kShrinkStatePlaces) * kMaxWorld / 8);
  }
}

// All of them read what all say.
TEST(LargestGroup, IsShrunkToAsManyRanksAsMayMeet) {
  struct : Progress {
    void add(Driven&) override {}
    void remove(Driven&) override {}
    void notify(const News&) override {}
    Status wait(std::span<Work* const>, int64_t, const InterruptCheck&) override { return {}; }
  } progress;
  Rank rank(kMaxWorld);
  ASSERT_TRUE(rank.setup->meet(rank.records(kHosts), {}).ok());
  Group group(rank.clock, std::move(rank.setup->finish(Deadline{0}).value().links), nullptr,
              kConfig);
  Shrinking shrinking(group, rank.transports, *rank.linker, progress, rank.clock, kConfig,
                      [](NewGroup, const RankSet&) { return nullptr; });
  std::vector<int> most(kMaxWorld - kMaxPeers);
  std::iota(most.begin(), most.end(), 0);
  const std::span few(most.data(), most.size() - 1);
  const Status refused = shrinking.exclude(few);
  EXPECT_EQ(refused.code(), StatusCode::Unsupported);
  EXPECT_EQ(refused.message(),
            "a group can be shrunk to 4096 ranks at most, and 4097 would stay of this one; destroy "
            "it, and make a new group");
  const Status taken = shrinking.exclude(most);
  EXPECT_TRUE(taken.ok()) << taken.message();
  const Layout& layout = group.members().layout();
  const auto said =
      ShrinkState::read(group.members().block().base + layout.shrink_state().own, kRank, kMaxWorld);
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(std::count(said->excluded.begin(), said->excluded.end(), true),
            static_cast<int64_t>(most.size()));
}

// What each rank goes through when all meet in a store, to which they append in any order.
TEST(LargestGroup, TheSignedRecordsOfAllPassAStore) {
  const auto record = [](uint32_t rank) { return std::string(400, '.') + std::to_string(rank); };
  const std::string name = "group";
  const auto key = JobKey::load("the secret of the job").take();
  std::string nonces;
  Mac exchange{};
  const auto signed_record = [&](uint32_t rank) {
    const uint32_t numbers[] = {rank, kMaxWorld, static_cast<uint32_t>(name.size())};
    const std::string all = std::string(reinterpret_cast<const char*>(numbers), sizeof numbers) +
                            name + std::string(bytes_to_sign(exchange)) + record(rank);
    const Mac signature = key.sign("rdmacoll record 2", all).take();
    return "rdmasea1" + std::string(bytes_to_sign(signature)) + record(rank);
  };
  Said store([&](const std::string& mine) -> Result<std::vector<std::string>> {
    const bool first = nonces.empty();
    std::string words;
    for (uint32_t rank = kMaxWorld; rank-- > 0;) {
      words += appended_record(rank, first ? mine : rank == kRank ? mine : signed_record(rank));
      if (first) nonces += mine;
    }
    if (first) exchange = key.sign("rdmacoll nonces 1", nonces).take();
    auto parsed = parse_appended(words, kMaxWorld);
    if (!parsed.ok()) return parsed.status();
    std::vector<std::string> everyones;
    for (auto& says : parsed.value()) everyones.push_back(std::move(says.value()));
    return everyones;
  });
  SealedBootstrap sealed(store, key, name, kRank, kMaxWorld);
  auto records = sealed.all_gather(record(kRank), Deadline{0});
  ASSERT_TRUE(records.ok()) << records.status().message();
  ASSERT_EQ(records.value().size(), kMaxWorld);
  for (const uint32_t rank : {0u, 8000u, kRank}) EXPECT_EQ(records.value()[rank], record(rank));
}

}  // namespace
}  // namespace rdmacoll::largest_group_test
