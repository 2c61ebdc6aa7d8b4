// The contract of transport.h for processes that meet on demand: one side calls, the other hears of
// it by its set-up descriptor and answers; then regions are offered with notes.
#include <poll.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/contract/contract.h"

namespace rdmacoll::on_demand_test {
namespace {

constexpr uint64_t kBytes = 4096;

// As the engine's thread for set-up: it serves when the descriptor says so, and answers callers.
// Where there is none (-1) it always does.
struct Linker {
  Linker(Member& of, std::vector<std::string> all)
      : member(of), addresses(std::move(all)), peers(addresses.size()) {}

  bool is_woken() const {
    const int fd = member.transport.info().set_up_fd;
    if (fd < 0) return true;
    pollfd waited{fd, POLLIN, 0};
    return ::poll(&waited, 1, 0) == 1;
  }
  void look() {
    if (!is_woken()) return;
    ++wakes;
    serve();
    std::erase_if(callers, [&](const std::string& caller) {
      Result<PeerId> peer = member.transport.connect(caller, Deadline{0});
      if (peer.status().code() == StatusCode::Timeout) return false;
      for (size_t other = 0; other < addresses.size(); ++other) {
        if (!peers[other] && member.transport.called_by(addresses[other])) call(other);
      }
      return true;
    });
  }
  void serve() {
    SetUpReport report;
    member.transport.serve(report);
    std::move(report.offers.begin(), report.offers.end(), std::back_inserter(offers));
    std::move(report.callers.begin(), report.callers.end(), std::back_inserter(callers));
  }
  // Whether they have met.
  bool call(size_t other) {
    if (peers[other]) return true;
    Result<PeerId> peer = member.transport.connect(addresses[other], Deadline{0});
    if (peer.ok()) peers[other] = peer.value();
    EXPECT_TRUE(peer.ok() || peer.status().code() == StatusCode::Timeout)
        << peer.status().message();
    return peer.ok();
  }
  bool has_met_all() const {
    return std::all_of(peers.begin(), peers.end(), [](const auto& peer) { return peer; });
  }
  PeerId peer(int other) const { return *peers[static_cast<size_t>(other)]; }
  // Whose offer it is; -1: nobody's that is met.
  int owner_of(const RegionOffer& offer) const {
    const auto found = std::find(peers.begin(), peers.end(), std::optional(offer.peer));
    return found == peers.end() ? -1 : static_cast<int>(found - peers.begin());
  }
  Deadline deadline() const { return member.deadline(); }

  Member& member;
  std::vector<std::string> addresses;
  std::vector<std::optional<PeerId>> peers;  // by rank
  std::vector<RegionOffer> offers;           // that have come
  std::vector<std::string> callers;          // that are not met
  uint64_t wakes = 0;
};

#define AWAIT_SERVING(linker, condition)  \
  while ((linker).look(), !(condition)) { \
    co_await (linker).member.turn();      \
  }

// While the others are served.
Script say_done(Linker& linker) {
  Member& member = linker.member;
  const int round = member.next_round++;
  member.board.publish(round, member.rank, "done");
  for (int other = 0; other < member.world; ++other) {
    AWAIT_SERVING(linker, member.board.published(round, other));
  }
}

// The lower rank calls each higher one, which does not care to know it. Each calls itself.
Script meet_on_demand(Linker& linker) {
  const auto rank = static_cast<size_t>(linker.member.rank);
  for (size_t other = rank; other < linker.addresses.size(); ++other) {
    AWAIT_SERVING(linker, linker.call(other));
  }
  AWAIT_SERVING(linker, linker.has_met_all());
}

Script check_meeting(Member& member) {
  co_await member.gather(member.transport.info().address);
  Linker linker(member, member.gathered);
  co_await meet_on_demand(linker);
  for (size_t other = 0; other < linker.addresses.size(); ++other) {
    REQUIRE_OK(member.transport.peer_status(*linker.peers[other]));
    Result<PeerId> again = member.transport.connect(linker.addresses[other], Deadline{0});
    REQUIRE_OK(again.status());
    EXPECT_EQ(again.value(), *linker.peers[other]);
  }
  co_await say_done(linker);
  EXPECT_TRUE(linker.offers.empty());
  // Nothing comes any more, but what had been said twice and is late.
  for (int turn = 0; turn < 200; ++turn) {
    linker.look();
    co_await member.turn();
  }
  AWAIT_SERVING(linker, member.transport.info().set_up_fd < 0 || !linker.is_woken());
  co_await member.gather("nobody leaves before all have looked");
}

TEST_P(Contract, OneSideCallsAndBothMeet) {
  for (uint64_t seed = 1; seed <= 5; ++seed) kind().run(kind(), world(), seed, check_meeting);
}

uint64_t note_of(int from, uint64_t which) { return static_cast<uint64_t>(from + 1) << 40 | which; }

// Each rank offers two regions and a note alone to all, itself included; odd ones when they have
// been offered something, as an answer.
Script exchange_offers(Member& member) {
  co_await member.gather(member.transport.info().address);
  Linker linker(member, member.gathered);
  std::vector<MadeRegion> mine;
  for (int i = 0; i < 2; ++i) {
    Result<MadeRegion> made = member.make(kBytes);
    REQUIRE_OK(made.status());
    mine.push_back(made.value());
  }
  co_await member.gather(mine[0].key + mine[1].key);
  const std::vector<std::string> keys = member.gathered;
  co_await meet_on_demand(linker);
  const size_t world = linker.peers.size();
  if (member.rank % 2 == 1) AWAIT_SERVING(linker, linker.offers.size() >= 3 * (world + 1) / 2 / 3);
  for (int other = 0; other < member.world; ++other) {
    const auto offer = [&](RegionId region, uint64_t which) {
      return member.transport.offer_region(linker.peer(other), region, note_of(member.rank, which));
    };
    REQUIRE_OK(offer(mine[0].id, 0));
    REQUIRE_OK(offer(kNoRegion, 1));
    REQUIRE_OK(offer(mine[1].id, 2));
  }
  AWAIT_SERVING(linker, linker.offers.size() >= 3 * world);
  co_await say_done(linker);
  std::map<int, uint64_t> come;
  for (const RegionOffer& offer : linker.offers) {
    const int owner = linker.owner_of(offer);
    if (owner < 0) throw std::runtime_error("an offer of nobody");
    const uint64_t which = come[owner]++;
    EXPECT_EQ(offer.note, note_of(owner, which));
    const std::string& both = keys[static_cast<size_t>(owner)];
    const size_t half = both.size() / 2;
    EXPECT_EQ(offer.key, which == 1 ? "" : both.substr(which == 0 ? 0 : half, half));
    if (which == 1) continue;
    Result<Region> opened = member.transport.open_region(offer.peer, offer.key, linker.deadline());
    REQUIRE_OK(opened.status());
    const RemoteSlice line{opened.value().id, kLineBytes * static_cast<uint64_t>(member.rank),
                           kLineBytes};
    AWAIT(member,
          member.transport.signal(offer.peer, 0, line, offer.note, Header{}) != Posted::Full);
  }
  EXPECT_EQ(linker.offers.size(), 3 * world);
  for (int other = 0; other < member.world; ++other) {
    for (size_t i = 0; i < 2; ++i) {
      const auto& line =
          *reinterpret_cast<const Line*>(mine[i].base + kLineBytes * static_cast<uint64_t>(other));
      AWAIT(member, line.counter.load(std::memory_order_acquire) == note_of(member.rank, 2 * i));
    }
  }
  co_await member.gather("done");
}

TEST_P(Contract, OffersComeOnceInOrderAndOpen) { run(50, exchange_offers); }

// Over and over: one offers, the other opens, or does not, and closes. The id is free after it.
Script offer_again_and_again(Member& member) {
  const uint64_t rounds = member.kind.is_simulated ? 40 : 1'500;
  co_await member.gather(member.transport.info().address);
  Linker linker(member, member.gathered);
  co_await meet_on_demand(linker);
  if (member.rank > 1) co_return co_await say_done(linker);
  const int other = 1 - member.rank;
  for (uint64_t round = 1; member.rank == 0 && round <= rounds; ++round) {
    Result<MadeRegion> made = make_region(member.transport, 0, kBytes);
    REQUIRE_OK(made.status());
    REQUIRE_OK(member.transport.offer_region(linker.peer(other), 0, round));
    member.transport.release_region(0, Release::Keep);
    AWAIT_SERVING(linker, member.transport.is_reusable(0));
  }
  for (uint64_t round = 1; member.rank == 1 && round <= rounds; ++round) {
    AWAIT_SERVING(linker, !linker.offers.empty());
    if (linker.offers.size() != 1 || linker.offers[0].note != round) {
      throw std::runtime_error("an offer came twice, or not in its turn");
    }
    const RegionOffer offer = std::exchange(linker.offers, {})[0];
    if (round % 2 == 0) {
      REQUIRE_OK(member.transport.open_region(offer.peer, offer.key, linker.deadline()).status());
      member.transport.close_region(offer.peer, 0);
    } else {
      member.transport.close_region(offer.peer, 0, offer.key);
    }
  }
  co_await say_done(linker);
}

TEST_P(Contract, AnOfferThatIsDeclinedFreesTheIdToo) {
  if (world() > 1) run(5, offer_again_and_again);
}

// The owner releases before the other has opened.
Script release_early(Member& member) {
  co_await member.gather(member.transport.info().address);
  Linker linker(member, member.gathered);
  co_await meet_on_demand(linker);
  if (member.rank > 1) co_return co_await say_done(linker);
  const PeerId peer = linker.peer(1 - member.rank);
  if (member.rank == 0) {
    for (RegionId id = 0; id < 2; ++id) {
      Result<MadeRegion> made = make_region(member.transport, id, kBytes);
      REQUIRE_OK(made.status());
      REQUIRE_OK(member.transport.offer_region(peer, id, 1 + id));
    }
    member.transport.release_region(0, Release::Keep);
    member.transport.release_region(1, Release::Withdraw);
    REQUIRE_OK(member.transport.offer_region(peer, kNoRegion, 3));
    AWAIT_SERVING(linker, member.transport.is_reusable(0) && member.transport.is_reusable(1));
  } else {
    AWAIT_SERVING(linker, linker.offers.size() == 3);
    REQUIRE_OK(
        member.transport.open_region(peer, linker.offers[0].key, linker.deadline()).status());
    // By now the notice of the withdrawal has come, but in a simulation, where it is known anyway.
    const Status late =
        member.transport.open_region(peer, linker.offers[1].key, linker.deadline()).status();
    EXPECT_EQ(late.code(), StatusCode::PeerFailed) << late.message();
    EXPECT_NE(late.message().find("taken its memory back"), std::string::npos) << late.message();
    member.transport.close_region(peer, 0);
    member.transport.close_region(peer, 1, linker.offers[1].key);  // to no effect
  }
  co_await say_done(linker);
}

TEST_P(Contract, AnOfferOutlivesItsOwnersReleaseButNoWithdrawal) {
  if (world() > 1) run(20, release_early);
}

// The owner takes back what the other has heard of, and offers other memory under the same id
// before the other lets go of the first.
Script offer_another_under_the_id(Member& member) {
  co_await member.gather(member.transport.info().address);
  Linker linker(member, member.gathered);
  co_await meet_on_demand(linker);
  if (member.rank > 1) co_return co_await say_done(linker);
  const PeerId peer = linker.peer(1 - member.rank);
  if (member.rank == 0) {
    REQUIRE_OK(make_region(member.transport, 0, kBytes).status());
    REQUIRE_OK(member.transport.offer_region(peer, 0, 1));
    member.transport.release_region(0, Release::Withdraw);
    AWAIT_SERVING(linker, member.transport.is_reusable(0));
    REQUIRE_OK(make_region(member.transport, 0, kBytes).status());
    REQUIRE_OK(member.transport.offer_region(peer, 0, 2));
  } else {
    AWAIT_SERVING(linker, linker.offers.size() == 2);
    member.transport.close_region(peer, 0, linker.offers[0].key);
    REQUIRE_OK(
        member.transport.open_region(peer, linker.offers[1].key, linker.deadline()).status());
    member.transport.close_region(peer, 0);
  }
  co_await say_done(linker);
}

TEST_P(Contract, ADeclinedOfferIsNotTheNextOneUnderItsId) {
  if (world() > 1) run(20, offer_another_under_the_id);
}

// Rank 0 leaves in the middle of all of it.
Script leave_in_between(Member& member) {
  co_await member.gather(member.transport.info().address);
  Linker linker(member, member.gathered);
  if (member.rank == 0) {
    for (size_t other = 1; other < linker.addresses.size(); ++other) {
      if (!linker.call(other)) continue;
      for (uint64_t note = 1; note < 20; ++note) {
        REQUIRE_OK(member.transport.offer_region(*linker.peers[other], kNoRegion, note));
      }
    }
    if (member.seed % 2 == 0) co_await member.turn();
    member.leave();
    co_await member.gather("has left");
    co_return;
  }
  const int round = member.next_round++;
  member.board.publish(round, member.rank, "");
  while (!member.board.published(round, 0)) {
    linker.serve();
    co_await member.turn();
  }
  for (int turn = 0; turn < 200; ++turn) {
    linker.serve();
    co_await member.turn();
  }
  EXPECT_LT(linker.offers.size(), 20u);
}

TEST_P(Contract, WhoServesOutlivesACallerThatLeaves) {
  if (world() == 1) return;
  for (uint64_t seed = 1; seed <= 4; ++seed) kind().run(kind(), world(), seed, leave_in_between);
}

// Nobody takes what rank 0 offers.
Script offer_too_much(Member& member) {
  co_await member.gather(member.transport.info().address);
  Linker linker(member, member.gathered);
  co_await meet_on_demand(linker);
  co_await say_done(linker);
  // Which hears what has come over shared memory, too. serve() would take the offers.
  const auto is_lost = [&](size_t other) {
    return !member.transport.connect(linker.addresses[other], Deadline{0}).ok();
  };
  if (member.rank == 1) {
    AWAIT(member, is_lost(0));
    const Status why = member.transport.peer_status(linker.peer(0));
    EXPECT_NE(why.message().find("has offered this process more than 4096"), std::string::npos)
        << why.message();
    linker.offers.clear();
    linker.serve();
    EXPECT_EQ(linker.offers.size(), 4096u);
  } else if (member.rank == 0) {
    for (uint64_t note = 1; note <= 5'000 && !is_lost(1); ++note) {
      if (!member.transport.offer_region(linker.peer(1), kNoRegion, note).ok()) break;
      if (note % 64 == 0) co_await member.turn();
    }
    AWAIT(member, is_lost(1));
  }
  co_await member.gather("done");
}

TEST_P(Contract, APeerThatFloodsWithOffersIsLost) {
  if (world() == 2 && !kind().is_simulated) run(1, offer_too_much);
}

}  // namespace
}  // namespace rdmacoll::on_demand_test
