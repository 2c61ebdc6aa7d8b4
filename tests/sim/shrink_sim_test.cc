// Groups that are shrunk while ranks die, each from one seed (seeds.h): they die in a random script
// and while the others make a smaller group, which call it at any distance in time. All that live
// end up with the same group, and its collectives are exact; if one died meanwhile that was still
// taken in, they shrink the new group, and so on. On several hosts whole hosts die, too.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>

#include "tests/sim/hosts.h"
#include "tests/sim/script.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_world.h"

namespace rdmacoll::shrink_sim_test {
namespace {

constexpr int kOperations = 4;
constexpr uint64_t kMomentMax = 2'000;  // steps until a death; about half of a script
constexpr uint64_t kLatestCall = 1'500;
constexpr uint64_t kLatestNews = 100;  // about as long as it takes to read what others say

// When one dies: at any time; soon after the first of them holds the new group, or has decided.
enum class Death { None, Meanwhile, OnceMade, OnceDecided, kCount };

struct Totals {
  uint64_t shrinkings = 0, deaths = 0, deaths_meanwhile = 0, taken_in_dead = 0, rounds = 0;
  uint64_t with_levels = 0;  // of the groups in the end: several hosts, one with several ranks
};

class Story {
 public:
  Story(uint64_t seed, Where where) : random_(seed) {
    const Config config = random_ranks(random_, where, &options_);
    if (random_() % 3 == 0) options_.max_delay_ns = 2'000'000;
    if (random_() % 2 == 0) options_.max_notice_ns = 10'000;  // before what else is on its way
    world_ = std::make_unique<SimWorld>(seed, options_, config);
    for (int r = 0; r < options_.world; ++r) members_.push_back({.rank = r, .now = {}, .next = {}});
  }

  void run(Totals* totals) {
    std::vector<Communicator*> all;
    for (int r = 0; r < options_.world; ++r) all.push_back(&world_->rank(r));
    ASSERT_NO_FATAL_FAILURE(run_script(all, true));
    if (alive() == options_.world && options_.world > 1 && random_() % 2 == 0) kill_somebody();
    while (true) {
      ASSERT_NO_FATAL_FAILURE(shrink(totals));
      const int size = first_alive().now->size();
      if (size == alive()) break;
      ++totals->taken_in_dead;
      ASSERT_LT(alive(), size);
    }
    check_islands(totals);
    ASSERT_NO_FATAL_FAILURE(run_script(communicators(), false));
    totals->deaths += static_cast<uint64_t>(options_.world - alive());
    totals->rounds += world_->rounds();
    for (Member& member : members_) member.now.reset();
  }

 private:
  struct Member {
    int rank;  // in the world
    bool dead = false;
    uint64_t calls_at = 0;  // rounds of the world
    std::unique_ptr<Shrinking> shrinking{};
    WorkPtr reading{};
    std::shared_ptr<Communicator> now;  // empty: the first group
    std::shared_ptr<Communicator> next;
  };

  int alive() const {
    return static_cast<int>(
        std::count_if(members_.begin(), members_.end(), [](const Member& m) { return !m.dead; }));
  }
  Member& first_alive() {
    return *std::find_if(members_.begin(), members_.end(), [](const Member& m) { return !m.dead; });
  }
  std::vector<Communicator*> communicators() {
    std::vector<Communicator*> found;
    for (Member& member : members_) {
      if (!member.dead) found.push_back(member.now.get());
    }
    return found;
  }
  void kill_somebody() {
    if (alive() < 2) return;
    size_t victim = random_() % members_.size();
    while (members_[victim].dead) victim = (victim + 1) % members_.size();
    kill(members_[victim]);
    if (options_.hosts.empty() || random_() % 2 == 0) return;
    const int host = host_of(members_[victim]);
    const auto is_elsewhere = [&](const Member& m) { return !m.dead && host_of(m) != host; };
    if (std::none_of(members_.begin(), members_.end(), is_elsewhere)) return;  // who is to live?
    for (Member& member : members_) {
      if (!member.dead && host_of(member) == host) kill(member);
    }
  }
  void kill(Member& member) {
    member.dead = true;
    world_->kill(member.rank);
  }
  int host_of(const Member& member) const {
    return options_.hosts[static_cast<size_t>(member.rank)];
  }

  // The smaller group knows on which hosts its ranks are.
  void check_islands(Totals* totals) {
    if (options_.hosts.empty()) return;
    std::vector<std::string> hosts;
    for (const Member& member : members_) {
      if (!member.dead) hosts.push_back(std::to_string(host_of(member)));
    }
    for (const Communicator* c : communicators()) {
      EXPECT_EQ(c->islands(), Islands::by_key(hosts)) << c->islands().shape();
      totals->with_levels += c->rank() == 0 && c->islands().has_levels();
    }
  }

  // With deaths in it, or exact.
  void run_script(const std::vector<Communicator*>& group, bool deaths) {
    std::vector<Heap*> heaps;
    for (Communicator* c : group) heaps.push_back(c->heap());
    Script script(random_, heaps, kOperations);
    std::vector<std::vector<WorkPtr>> works(group.size());
    for (Communicator* c : group) {
      if (!deaths) c->set_timeout_ms(kHourMs);  // slow networks take seconds, which is no error
    }
    for (int i = 0; i < script.operations(); ++i) {
      for (size_t r = 0; r < group.size(); ++r) {
        for (WorkPtr& work : script.start(i, *group[r])) works[r].push_back(std::move(work));
      }
    }
    for (uint64_t kills = deaths ? random_() % 3 : 0; kills > 0; --kills) {
      for (uint64_t steps = random_() % kMomentMax; steps > 0; --steps) world_->step();
      kill_somebody();
    }
    const auto ended = [&] {
      for (size_t r = 0; r < group.size(); ++r) {
        if (deaths && members_[r].dead) continue;
        if (!std::all_of(works[r].begin(), works[r].end(), [](auto& w) { return w->done(); })) {
          return false;
        }
      }
      return true;
    };
    ASSERT_TRUE(world_->run_until(ended)) << "hangs";
    for (size_t r = 0; r < group.size() && !deaths; ++r) {
      for (const WorkPtr& work : works[r]) {
        ASSERT_TRUE(work->status().ok()) << work->status().message();
      }
      for (int i = 0; i < script.operations(); ++i) {
        ASSERT_EQ(script.check(i, static_cast<int>(r)), "");
      }
    }
  }

  void shrink(Totals* totals) {
    for (Member& member : members_) {
      member.calls_at = world_->rounds() + random_() % kLatestCall;
    }
    const auto death = static_cast<Death>(random_() % static_cast<uint64_t>(Death::kCount));
    uint64_t kill_at = UINT64_MAX;
    made_one_ = false;
    if (death == Death::Meanwhile) kill_at = world_->rounds() + random_() % (2 * kLatestCall);
    bool made = false, decided = false;
    const uint64_t limit = world_->rounds() + 2'000'000;
    const auto over = [](const Member& m) { return m.dead || m.next != nullptr; };
    while (!std::all_of(members_.begin(), members_.end(), over)) {
      ASSERT_LT(world_->rounds(), limit) << "hangs";
      world_->step();
      if (world_->rounds() >= kill_at) {
        kill_at = UINT64_MAX;
        const int before = alive();
        kill_somebody();
        totals->deaths_meanwhile += static_cast<uint64_t>(before - alive());
      }
      Member& member = members_[random_() % members_.size()];
      if (over(member) || world_->rounds() < member.calls_at) continue;
      ASSERT_NO_FATAL_FAILURE(turn(member));
      const bool first_made = made_one_ && !std::exchange(made, true);
      const bool first_decided = member.next != nullptr && !std::exchange(decided, true);
      if ((first_made && death == Death::OnceMade) ||
          (first_decided && death == Death::OnceDecided)) {
        kill_at = world_->rounds() + random_() % kLatestNews;
      }
    }
    ++totals->shrinkings;
    const RankSet without = without_[first_alive().next.get()];
    for (Member& member : members_) {
      if (member.dead) continue;
      ASSERT_EQ(without_[member.next.get()], without) << "ranks hold different groups";
      member.now = std::move(member.next);
    }
  }

  void turn(Member& member) {
    if (member.shrinking == nullptr) {
      Communicator& group = member.now ? *member.now : world_->rank(member.rank);
      const auto make = [this, &member](NewGroup made, const RankSet& excluded) {
        auto communicator = world_->adopt(member.rank, std::move(made));
        without_[communicator.get()] = excluded;
        made_one_ = true;
        return communicator;
      };
      member.shrinking = world_->shrinking_of(member.rank, group, make);
      ASSERT_TRUE(member.shrinking->exclude({}).ok());
    }
    if (member.reading == nullptr) member.reading = member.shrinking->read();
    if (!member.reading->done()) return;
    member.reading.reset();
    auto turned = member.shrinking->consider();
    ASSERT_TRUE(turned.ok()) << turned.status().message();
    if (turned.value() != Shrinking::Turn::Over) return;
    member.next = member.shrinking->take().communicator;
    member.shrinking.reset();
    if (random_() % 2 == 0) return;
    // The old group is left at once, before the others have ended.
    if (member.now == nullptr) world_->leave(member.rank);
    member.now.reset();
  }

  std::mt19937_64 random_;
  SimOptions options_;
  std::unique_ptr<SimWorld> world_;
  std::vector<Member> members_;
  bool made_one_ = false;                           // in this shrinking
  std::map<const Communicator*, RankSet> without_;  // whom of the group before
};

void run_stories(const char* name, Where where) {
  Totals totals;
  const uint64_t ran = for_each_seed(150, [&](uint64_t seed) { Story(seed, where).run(&totals); });
  if (ran >= kEnoughToCount) {
    EXPECT_GT(totals.deaths_meanwhile, ran / 8) << "few die meanwhile";
    EXPECT_GT(totals.taken_in_dead, ran / 50) << "few die once it is decided";
    if (where == Where::OnHosts) {
      EXPECT_GT(totals.with_levels, ran / 8) << "few end on several hosts";
    }
  }
  std::printf("%s: %" PRIu64 " seeds, %" PRIu64 " smaller groups, %" PRIu64 " deaths, %" PRIu64
              " of them meanwhile, %" PRIu64 " groups with one that died meanwhile, %" PRIu64
              " ended with levels, %" PRIu64 " rounds\n",
              name, ran, totals.shrinkings, totals.deaths, totals.deaths_meanwhile,
              totals.taken_in_dead, totals.with_levels, totals.rounds);
}

TEST(Shrinking, ThoseThatLiveHoldTheSameGroup) {
  run_stories("shrinkings", Where::OnOneHostOrMany);
}

TEST(Hosts, ThoseThatLiveHoldTheSameGroup) { run_stories("shrinkings on hosts", Where::OnHosts); }

}  // namespace
}  // namespace rdmacoll::shrink_sim_test
