// Versions that one rank publishes and the others read, on networks that tear every read: none may
// be of two versions, also where the rank dies.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "csrc/remote/publication.h"
#include "csrc/remote/snapshot.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_world.h"

namespace rdmacoll::snapshot_sim_test {
namespace {

constexpr uint64_t kSeeds = 40;
constexpr uint64_t kVersions = 12;
constexpr uint64_t kMostRounds = 2'000'000;  // of a world: ten times as many as it takes

// Writes one version after the other, a few words at a time.
class Writer {
 public:
  Writer(SimWorld& world, RemoteMemoryPtr memory, uint64_t words)
      : world_(world), publication_(std::move(memory), 0, words * 8), words_(words) {}

  bool is_done() const { return publication_.version() == kVersions; }
  void go_on() {
    if (is_done() || world_.draw(3) == 0) return;
    if (next_ == 0) to_ = reinterpret_cast<uint64_t*>(publication_.begin());
    const uint64_t count = std::min(words_ - next_, 1 + world_.draw(words_));
    std::fill_n(to_ + next_, count, publication_.version() + 1);
    next_ += count;
    if (next_ < words_) return;
    publication_.complete();
    next_ = 0;
  }

 private:
  SimWorld& world_;
  Publication publication_;
  const uint64_t words_;
  uint64_t* to_ = nullptr;
  uint64_t next_ = 0;  // word of the version that is being written
};

// Reads versions until it has the last, or their writer is lost.
class Reader {
 public:
  Reader(SimWorld& world, int rank, const std::string& address, uint64_t words)
      : world_(world), context_(world.rank(rank).context()), address_(address), words_(words) {}

  bool is_done() const { return newest_ == kVersions || has_lost_; }
  uint64_t snapshots() const { return snapshots_; }
  // Whether it knows how to ask for memory.
  SessionPtr session() {
    if (session_ == nullptr) {
      auto met = context_.sessions.look(address_, "rank 0", Deadline{INT64_MAX});
      if (met.ok()) session_ = met.take();
    }
    return session_;
  }
  void open(const std::string& key) {
    const Link& link = session_->link();
    auto region = link.transport->open_region(link.peer, key, Deadline{0});
    ASSERT_TRUE(region.ok()) << region.status().message();
    theirs_ = region.value();
    auto mine = context_.transports.create_region(words_ * 8);
    ASSERT_TRUE(mine.ok()) << mine.status().message();
    mine_ = mine.value();
  }
  void go_on() {
    if (is_done()) return;
    if (work_ == nullptr) return begin();
    if (!work_->done()) return;
    if (work_->status().code() == StatusCode::PeerFailed) {
      has_lost_ = true;
      return;
    }
    ASSERT_TRUE(work_->status().ok()) << work_->status().message();
    work_ = nullptr;
    if (*version_ == 0) return;
    ASSERT_GT(*version_, newest_);
    newest_ = *version_;
    ++snapshots_;
    const auto* words = reinterpret_cast<const uint64_t*>(mine_.base);
    ASSERT_TRUE(std::all_of(words, words + words_, [&](uint64_t word) { return word == newest_; }))
        << "version " << newest_ << " is torn";
  }

 private:
  void begin() {
    // The words after one of them first, then those before it.
    const uint64_t bytes = words_ * 8, cut = world_.draw(words_) * 8;
    std::vector<MovedRange> parts{{cut, cut, bytes - cut}};
    if (cut > 0) parts.push_back({0, 0, cut});
    auto snapshot =
        std::make_unique<Snapshot>(LocalSlice{mine_.base, bytes, mine_.id}, std::move(parts), bytes,
                                   theirs_, 0, newest_, version_);
    work_ = std::make_shared<Work>();
    snapshot->work = work_;
    snapshot->deadline_ns = INT64_MAX;
    const Status submitted = context_.sessions.submit(*session_, std::move(snapshot));
    has_lost_ = submitted.code() == StatusCode::PeerFailed;
    ASSERT_TRUE(submitted.ok() || has_lost_) << submitted.message();
  }

  SimWorld& world_;
  const EngineContext& context_;
  const std::string address_;
  const uint64_t words_;
  SessionPtr session_;
  Region theirs_;
  Region mine_;
  WorkPtr work_;
  std::shared_ptr<uint64_t> version_ = std::make_shared<uint64_t>(0);
  uint64_t newest_ = 0;
  uint64_t snapshots_ = 0;
  bool has_lost_ = false;
};

// The session of rank 0 with that rank, once it is there.
SessionPtr session_with(SimWorld& world, int rank) {
  auto met = world.rank(0).context().sessions.look(*world.rank(0).address_of(rank), "a reader",
                                                   Deadline{INT64_MAX});
  return met.ok() ? met.take() : nullptr;
}

uint64_t read_versions(uint64_t seed) {
  std::mt19937_64 random(seed);
  SimOptions options;
  options.world = 2 + static_cast<int>(random() % 3);
  options.mapped = random() % 2 == 0;
  SimWorld world(seed, options, small_heaps());
  const uint64_t words = 1 + world.draw(400);
  const EngineContext& owner = world.rank(0).context();
  auto memory =
      RemoteMemory::make({owner.transports, owner.sessions, std::make_shared<RemoteMemories>(), {}},
                         versions_bytes(words * 8), Others::Write);
  EXPECT_TRUE(memory.ok()) << memory.status().message();
  std::vector<std::unique_ptr<Reader>> readers;
  for (int rank = 1; rank < world.size(); ++rank) {
    readers.push_back(
        std::make_unique<Reader>(world, rank, *world.rank(rank).address_of(0), words));
    EXPECT_TRUE(world.run_until([&] {
      return readers.back()->session() != nullptr && session_with(world, rank) != nullptr;
    }));
    auto key = memory.value()->offer(session_with(world, rank));
    EXPECT_TRUE(key.ok()) << key.status().message();
    readers.back()->open(key.value());
  }
  Writer writer(world, memory.value(), words);
  const uint64_t dies_at = world.draw(4) == 0 ? world.draw(2000) : kMostRounds;
  const auto all_done = [&] {
    return std::all_of(readers.begin(), readers.end(), [](const auto& r) { return r->is_done(); });
  };
  for (uint64_t round = 0; !all_done() && !testing::Test::HasFailure(); ++round) {
    if (round == kMostRounds) ADD_FAILURE() << "readers have not come to the last version";
    world.step();
    if (round == dies_at) world.kill(0);
    if (round < dies_at && world.draw(4) == 0) writer.go_on();
    for (const auto& reader : readers) reader->go_on();
  }
  uint64_t snapshots = 0;
  for (const auto& reader : readers) snapshots += reader->snapshots();
  return snapshots;
}

TEST(Snapshots, AreNeverTorn) {
  uint64_t snapshots = 0;
  const uint64_t ran =
      for_each_seed(kSeeds, [&](uint64_t seed) { snapshots += read_versions(seed); });
  std::printf("%" PRIu64 " snapshots in %" PRIu64 " worlds\n", snapshots, ran);
  if (ran >= kEnoughToCount) {
    EXPECT_GT(snapshots, 3 * ran);
  }
}

}  // namespace
}  // namespace rdmacoll::snapshot_sim_test
