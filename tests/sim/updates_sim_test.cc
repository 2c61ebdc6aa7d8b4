// A word that several ranks add to, over networks that bring what they ask for in any order: each
// number is given to one of them, and none is lost, also where the word's owner dies.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "csrc/engine/session/update_word.h"
#include "csrc/remote/remote_memory.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_world.h"

namespace rdmacoll::updates_sim_test {
namespace {

constexpr uint64_t kSeeds = 40;
constexpr uint64_t kAdds = 12;  // of each rank
constexpr size_t kAtOnce = 3;
constexpr uint64_t kMostRounds = 2'000'000;  // of a world: ten times as many as it takes

// The session of that rank with the other, once it is there.
SessionPtr session_between(SimWorld& world, int rank, int other) {
  auto met = world.rank(rank).context().sessions.look(
      *world.rank(rank).address_of(other), "rank " + std::to_string(other), Deadline{INT64_MAX});
  return met.ok() ? met.take() : nullptr;
}

// Adds 1 to a word of rank 0, some times, until that is lost.
class Adder {
 public:
  Adder(SimWorld& world, int rank, const SessionPtr& session, const std::string& key,
        uint64_t offset)
      : world_(world), sessions_(world.rank(rank).context().sessions), session_(session) {
    const Link& link = session->link();
    const Region theirs = link.transport->open_region(link.peer, key, Deadline{0}).value();
    word_ = {theirs.id, offset, kWordBytes};
  }

  bool is_done() const { return has_lost_ || (asked_ == kAdds && under_way_.empty()); }
  const std::vector<uint64_t>& numbers() const { return numbers_; }
  void go_on() {
    if (is_done()) return;
    if (asked_ < kAdds && under_way_.size() < kAtOnce && world_.draw(3) == 0) ask();
    std::erase_if(under_way_, [&](const UnderWay& one) {
      if (!one.work->done()) return false;
      if (one.work->status().ok()) {
        numbers_.push_back(*one.before);
      } else {
        EXPECT_EQ(one.work->status().code(), StatusCode::PeerFailed);
        has_lost_ = true;
      }
      return true;
    });
  }

 private:
  struct UnderWay {
    WorkPtr work;
    std::shared_ptr<uint64_t> before;
  };
  void ask() {
    const UnderWay one{std::make_shared<Work>(), std::make_shared<uint64_t>(0)};
    auto update = std::make_unique<UpdateWord>(word_, Update::add(1), one.before);
    update->work = one.work;
    update->deadline_ns = INT64_MAX;
    const Status submitted = sessions_.submit(*session_, std::move(update));
    has_lost_ = submitted.code() == StatusCode::PeerFailed;
    ASSERT_TRUE(submitted.ok() || has_lost_) << submitted.message();
    ++asked_;
    if (!has_lost_) under_way_.push_back(one);
  }

  SimWorld& world_;
  Sessions& sessions_;
  const SessionPtr session_;
  RemoteSlice word_;
  std::vector<UnderWay> under_way_;
  std::vector<uint64_t> numbers_;
  uint64_t asked_ = 0;
  bool has_lost_ = false;
};

uint64_t add_to_a_word(uint64_t seed) {
  std::mt19937_64 random(seed);
  SimOptions options;
  options.world = 2 + static_cast<int>(random() % 3);
  options.mapped = random() % 2 == 0;
  SimWorld world(seed, options, small_heaps());
  const EngineContext& owner = world.rank(0).context();
  const RemoteMemoryPtr memory =
      RemoteMemory::make({owner.transports, owner.sessions, std::make_shared<RemoteMemories>(), {}},
                         4096, Others::Write)
          .value();
  const uint64_t offset = kWordBytes * world.draw(4096 / kWordBytes);
  std::vector<std::unique_ptr<Adder>> adders;
  for (int rank = 1; rank < world.size(); ++rank) {
    SessionPtr session;
    EXPECT_TRUE(world.run_until([&] {
      session = session_between(world, rank, 0);
      return session != nullptr && session_between(world, 0, rank) != nullptr;
    }));
    const std::string key = memory->offer(session_between(world, 0, rank)).value();
    adders.push_back(std::make_unique<Adder>(world, rank, session, key, offset));
  }
  const uint64_t dies_at = world.draw(4) == 0 ? world.draw(200) : kMostRounds;
  bool has_died = false;
  const auto all_done = [&] {
    return std::all_of(adders.begin(), adders.end(), [](const auto& a) { return a->is_done(); });
  };
  for (uint64_t round = 0; !all_done() && !testing::Test::HasFailure(); ++round) {
    if (round == kMostRounds) ADD_FAILURE() << "not all updates have ended";
    world.step();
    if (round == dies_at) world.kill(0);
    has_died |= round == dies_at;
    for (const auto& adder : adders) adder->go_on();
  }
  std::vector<uint64_t> numbers;
  for (const auto& adder : adders) {
    numbers.insert(numbers.end(), adder->numbers().begin(), adder->numbers().end());
  }
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end())
      << "a number is given twice";
  const uint64_t all = kAdds * adders.size();
  EXPECT_TRUE(numbers.empty() || numbers.back() < all) << numbers.back();
  if (!has_died) {
    EXPECT_EQ(numbers.size(), all);
    EXPECT_EQ(*reinterpret_cast<const uint64_t*>(memory->data() + offset), all);
  }
  return numbers.size();
}

TEST(Updates, GiveEachNumberOnce) {
  uint64_t numbers = 0;
  const uint64_t ran =
      for_each_seed(kSeeds, [&](uint64_t seed) { numbers += add_to_a_word(seed); });
  std::printf("%" PRIu64 " updates in %" PRIu64 " worlds\n", numbers, ran);
  if (ran >= kEnoughToCount) {
    EXPECT_GT(numbers, kAdds * ran);
  }
}

}  // namespace
}  // namespace rdmacoll::updates_sim_test
