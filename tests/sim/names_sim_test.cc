// Operations by name: ranks submit them in any order, some come late, join or die, and all run one
// sequence: each name once per submission, errors on all ranks or on none.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "csrc/order/sequencer.h"
#include "csrc/order/submitter.h"
#include "tests/sim/seeds.h"

namespace rdmacoll::names_sim_test {
namespace {

constexpr uint64_t kSeeds = 300;
constexpr int kRounds =
    5;  // submissions of each name in a phase by a rank that does not join early
constexpr NamedKind kKinds[] = {NamedKind::AllReduce, NamedKind::AllGather,     NamedKind::AllToAll,
                                NamedKind::Broadcast, NamedKind::ReduceScatter, NamedKind::Barrier};

uint64_t mixed(std::initializer_list<uint64_t> values) {
  uint64_t hash = 1469598103934665603U;
  for (const uint64_t value : values) hash = (hash ^ value) * 1099511628211U + (hash >> 29);
  return hash ^ hash >> 31;
}

// What all ranks are going to do; of each rank all follows from the seed.
struct Script {
  uint64_t seed = 0;
  uint32_t ranks = 1;
  uint32_t names = 1;
  int phases = 1;  // all but the last end with a join of all

  bool joins(int phase) const { return phase + 1 < phases; }
  // How often the rank submits each name in the phase.
  int rounds(uint32_t rank, int phase) const {
    return joins(phase) ? static_cast<int>(mixed({seed, rank, static_cast<uint64_t>(phase), 1}) %
                                           (kRounds + 1))
                        : kRounds;
  }
  int common_rounds(int phase) const {
    int least = kRounds;
    for (uint32_t rank = 0; rank < ranks; ++rank) least = std::min(least, rounds(rank, phase));
    return least;
  }
  uint64_t draw(uint32_t name, int phase, int round, uint64_t what) const {
    return mixed({seed, name, static_cast<uint64_t>(phase), static_cast<uint64_t>(round), what});
  }
  NamedKind kind(uint32_t name, int phase, int round) const {
    const NamedKind kind = kKinds[mixed({seed, name, 2}) % std::size(kKinds)];
    const bool stays = round < common_rounds(phase) || mixed({seed, name, 12}) % 3 == 0;
    return stays || kind == NamedKind::Barrier ? kind : NamedKind::AllReduce;
  }
  // What cannot run while a rank has joined, which has no part in that.
  bool is_in_vain(uint32_t name, int phase, int round) const {
    const NamedKind of_round = kind(name, phase, round);
    return round >= common_rounds(phase) && of_round != NamedKind::AllReduce &&
           of_round != NamedKind::Barrier;
  }
  // The rank that asks for something else than the others; none: the number of ranks.
  uint32_t odd_one(uint32_t name, int phase, int round) const {
    if (ranks < 2 || round >= common_rounds(phase)) return ranks;
    if (kind(name, phase, round) == NamedKind::Barrier) return ranks;
    return draw(name, phase, round, 3) % 8 == 0
               ? static_cast<uint32_t>(draw(name, phase, round, 4) % ranks)
               : ranks;
  }
  NamedRequest request(uint32_t rank, uint32_t name, int phase, int round) const {
    NamedRequest request;
    request.name = "name " + std::to_string(name);
    request.kind = kind(name, phase, round);
    request.is_kept = mixed({seed, name, 5}) % 4 != 0;
    if (request.kind == NamedKind::Barrier) return request;
    // It changes now and then.
    const auto dims = static_cast<int64_t>(draw(name, phase, round / 3, 6) % 3);
    request.tensors.push_back({"float32", {1, 10 + dims}});
    if (odd_one(name, phase, round) == rank) request.tensors[0].dims[1] += 100;
    const uint64_t own = mixed({seed, name, rank, draw(name, phase, round / 2, 7)});
    if (request.kind == NamedKind::AllGather) request.tensors[0].dims[0] = int64_t(own % 5);
    if (request.kind == NamedKind::AllToAll) {
      for (uint32_t to = 0; to < ranks; ++to) request.splits.push_back(int64_t((own >> to) % 3));
    }
    return request;
  }
};

// One line of what a rank has been told.
struct Told {
  uint32_t name = 0;
  int phase = 0;
  int round = 0;
  bool is_refused = false;
  auto operator<=>(const Told&) const = default;
};

struct Rank {
  Submitter submitter;
  int phase = 0;
  bool has_joined = false;
  bool is_dead = false;
  std::vector<int> next;            // by name: the round to be submitted
  std::vector<int> told_of;         // by name: the round to be told of
  std::set<uint32_t> running;       // names that are decided
  std::set<uint32_t> in_flight;     // names
  std::vector<Told> told;           // all of it
  uint32_t asked = 0;               // who is late
  std::vector<uint32_t> told_late;  // who had asked
  std::deque<Bytes> to_sequencer, to_rank;
};

struct Covered {
  uint64_t runs = 0, refused = 0, joins = 0, deaths = 0, bits = 0, records = 0, answers = 0;
};

class World {
 public:
  World(const Script& script, Covered& covered)
      : script_(script),
        covered_(covered),
        random_(script.seed),
        sequencer_(script.ranks),
        ranks_(script.ranks) {
    for (Rank& rank : ranks_) start_phase(rank);
  }

  void run(bool with_death) {
    const uint64_t death_at = with_death ? random_() % 400 : UINT64_MAX;
    uint64_t still = 0;
    for (uint64_t turn = 0; still < 200 * script_.ranks; ++turn) {
      ASSERT_LT(turn, 1'000'000U) << "stuck";
      if (turn == death_at) kill();
      still = move(static_cast<uint32_t>(random_() % script_.ranks)) ? 0 : still + 1;
      if (testing::Test::HasFatalFailure()) return;
    }
    check_one_sequence();
    if (!with_death) check_all_ended();
  }

 private:
  void start_phase(Rank& rank) {
    rank.next.assign(script_.names, 0);
    rank.told_of.assign(script_.names, 0);
  }

  void kill() {
    Rank& rank = ranks_[random_() % script_.ranks];
    rank.is_dead = true;
    ++covered_.deaths;
  }

  // Whether anything happened.
  bool move(uint32_t at) {
    Rank& rank = ranks_[at];
    switch (random_() % 5) {
      case 0:
        return !rank.is_dead && submit(at, rank);
      case 1:
        return deliver_to_sequencer(at, rank);
      case 2:
        return decide();
      case 3:
        return !rank.is_dead && deliver(at, rank);
      default:
        return !rank.is_dead && end_one(rank);
    }
  }

  bool submit(uint32_t at, Rank& rank) {
    if (rank.has_joined) return false;
    const int rounds = script_.rounds(at, rank.phase);
    std::vector<uint32_t> can;
    bool all_submitted = true;
    for (uint32_t name = 0; name < script_.names; ++name) {
      if (rank.next[name] == rounds) continue;
      all_submitted = false;
      if (!rank.in_flight.contains(name)) can.push_back(name);
    }
    Bytes message;
    if (all_submitted && script_.joins(rank.phase)) {
      EXPECT_TRUE(rank.submitter.join(message).ok());
      rank.has_joined = true;
      ++covered_.joins;
    } else if (!can.empty()) {
      const uint32_t name = can[random_() % can.size()];
      const NamedRequest request = script_.request(at, name, rank.phase, rank.next[name]++);
      const Status submitted = rank.submitter.submit(request, message);
      EXPECT_TRUE(submitted.ok()) << submitted.message();
      rank.in_flight.insert(name);
      Bytes again;
      EXPECT_EQ(rank.submitter.submit(request, again).code(), StatusCode::InvalidArgument);
      EXPECT_TRUE(again.empty());
      ++(message[0] == std::byte{uint8_t(ToSequencer::Ready)} ? covered_.bits : covered_.records);
    } else {
      return false;
    }
    rank.to_sequencer.push_back(std::move(message));
    if (random_() % 8 == 0) ask(rank);
    return true;
  }

  static void ask(Rank& rank) {
    Bytes message;
    Submitter::ask(message);
    rank.to_sequencer.push_back(std::move(message));
    ++rank.asked;
  }

  // What has left a rank arrives, also when the rank has died meanwhile.
  bool deliver_to_sequencer(uint32_t at, Rank& rank) {
    if (rank.to_sequencer.empty() || ranks_[0].is_dead) return false;
    const Status taken = sequencer_.take(at, rank.to_sequencer.front());
    EXPECT_TRUE(taken.ok()) << taken.message();
    rank.to_sequencer.pop_front();
    return true;
  }

  bool decide() {
    if (ranks_[0].is_dead) return false;
    const Bytes decisions = sequencer_.decisions();
    if (decisions.empty()) return false;
    for (Rank& rank : ranks_) rank.to_rank.push_back(decisions);
    return true;
  }

  bool deliver(uint32_t at, Rank& rank) {
    if (rank.to_rank.empty()) return false;
    std::vector<Decision> decisions;
    const Status taken = rank.submitter.take(rank.to_rank.front(), decisions);
    EXPECT_TRUE(taken.ok()) << taken.message();
    rank.to_rank.pop_front();
    for (const Decision& decision : decisions) note(at, rank, decision);
    return true;
  }

  void note(uint32_t at, Rank& rank, const Decision& decision) {
    if (decision.what == Decision::What::JoinEnded) {
      EXPECT_TRUE(rank.has_joined) << "rank " << at;
      rank.has_joined = false;
      ++rank.phase;
      start_phase(rank);
      return;
    }
    if (decision.what == Decision::What::Late) {
      rank.told_late.push_back(decision.late.asked_by);
      check_late(decision.late);
      ++covered_.answers;
      return;
    }
    const bool is_refused = decision.what == Decision::What::Refused;
    const auto name = static_cast<uint32_t>(std::stoul(decision.name.substr(5)));
    ASSERT_LT(name, script_.names);
    const int round = rank.told_of[name]++;
    EXPECT_EQ(decision.is_own, round < script_.rounds(at, rank.phase));
    if (decision.is_own) {
      EXPECT_LT(round, rank.next[name]);
      EXPECT_TRUE(rank.running.insert(name).second);
    }
    const bool is_in_vain = script_.is_in_vain(name, rank.phase, round);
    EXPECT_EQ(is_refused, is_in_vain || script_.odd_one(name, rank.phase, round) < script_.ranks)
        << "rank " << at << ", " << decision.name << ", round " << round << ": "
        << decision.why.message();
    if (!is_refused) check_agreed(*decision.agreed, name, rank.phase, round);
    if (!is_in_vain) rank.told.push_back({name, rank.phase, round, is_refused});
    ++(is_refused ? covered_.refused : covered_.runs);
  }

  // Of what has been decided in the meantime nobody can tell any more.
  void check_late(const Late& late) const {
    for (const Unsubmitted& one : late.names) {
      const auto name = static_cast<uint32_t>(std::stoul(one.name.substr(5)));
      ASSERT_LT(name, script_.names);
      ASSERT_LT(one.missing.size(), script_.ranks);
      for (const uint32_t missing : one.missing) ASSERT_LT(missing, script_.ranks);
    }
  }

  void check_agreed(const Agreed& agreed, uint32_t name, int phase, int round) const {
    for (uint32_t rank = 0; rank < script_.ranks; ++rank) {
      const NamedRequest request = script_.request(rank, name, phase, round);
      EXPECT_EQ(agreed.request.kind, request.kind);
      EXPECT_EQ(agreed.request.tensors.size(), request.tensors.size());
      if (!request.tensors.empty()) {
        EXPECT_EQ(agreed.request.tensors[0].dims[1], request.tensors[0].dims[1]);
      }
      if (has_rows(request.kind)) {
        ASSERT_EQ(agreed.rows.size(), script_.ranks);
        EXPECT_EQ(agreed.rows[rank], rows_of(request)) << "of rank " << rank;
      }
    }
  }

  bool end_one(Rank& rank) {
    if (rank.running.empty()) return false;
    const auto one = std::next(rank.running.begin(),
                               static_cast<std::ptrdiff_t>(random_() % rank.running.size()));
    rank.submitter.end("name " + std::to_string(*one));
    rank.in_flight.erase(*one);
    rank.running.erase(one);
    return true;
  }

  void check_one_sequence() const {
    const auto longest = std::max_element(
        ranks_.begin(), ranks_.end(),
        [](const Rank& one, const Rank& other) { return one.told.size() < other.told.size(); });
    for (const Rank& rank : ranks_) {
      EXPECT_TRUE(std::equal(rank.told.begin(), rank.told.end(), longest->told.begin()))
          << "rank " << &rank - ranks_.data();
    }
    const std::set<Told> different(longest->told.begin(), longest->told.end());
    EXPECT_EQ(different.size(), longest->told.size());
  }

  void check_all_ended() const {
    uint32_t asked = 0;
    for (const Rank& rank : ranks_) asked += rank.asked;
    for (const Rank& rank : ranks_) {
      EXPECT_EQ(rank.told_late.size(), asked);
      EXPECT_EQ(rank.told_late, ranks_[0].told_late);
    }
    size_t expected = 0;
    for (int phase = 0; phase < script_.phases; ++phase) {
      int most = 0;
      for (uint32_t r = 0; r < script_.ranks; ++r) most = std::max(most, script_.rounds(r, phase));
      for (uint32_t name = 0; name < script_.names; ++name) {
        for (int round = 0; round < most; ++round) {
          expected += !script_.is_in_vain(name, phase, round);
        }
      }
    }
    for (const Rank& rank : ranks_) {
      EXPECT_EQ(rank.told.size(), expected) << "rank " << &rank - ranks_.data();
      EXPECT_EQ(rank.phase, script_.phases - 1);
    }
  }

  const Script& script_;
  Covered& covered_;
  std::mt19937_64 random_;
  Sequencer sequencer_;
  std::vector<Rank> ranks_;
};

TEST(Names, RunInOneOrderOnAllRanks) {
  Covered covered;
  const uint64_t seeds = for_each_seed(kSeeds, [&](uint64_t seed) {
    Script script{.seed = seed};
    script.ranks = std::array{1U, 2U, 3U, 4U, 7U}[mixed({seed, 8}) % 5];
    script.names = 1 + static_cast<uint32_t>(mixed({seed, 9}) % 12);
    script.phases = 1 + static_cast<int>(mixed({seed, 10}) % 3);
    World(script, covered).run(mixed({seed, 11}) % 4 == 0);
  });
  std::printf("names: %" PRIu64 " seeds, %" PRIu64 " runs, %" PRIu64 " refused, %" PRIu64
              " joins, %" PRIu64 " deaths, %" PRIu64 " bits, %" PRIu64 " records, %" PRIu64
              " answers\n",
              seeds, covered.runs, covered.refused, covered.joins, covered.deaths, covered.bits,
              covered.records, covered.answers);
  if (seeds < kEnoughToCount || testing::Test::HasFailure()) return;
  EXPECT_GT(covered.runs, 0U);
  EXPECT_GT(covered.refused, 0U);
  EXPECT_GT(covered.joins, 0U);
  EXPECT_GT(covered.deaths, 0U);
  EXPECT_GT(covered.bits, 0U);
  EXPECT_GT(covered.answers, 0U);
}

}  // namespace
}  // namespace rdmacoll::names_sim_test
