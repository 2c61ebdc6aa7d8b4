// The contract of transport.h: memory that is registered for gets alone. Whoever puts or signals
// there changes nothing in it, and costs nobody else anything; what becomes of him differs.
#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/contract/contract.h"

namespace rdmacoll::rights_test {
namespace {

constexpr uint64_t kBytes = 8192;  // that others get; as much behind it is for what is got of them
constexpr int kOwner = 0;

std::byte value_of(int rank) { return static_cast<std::byte>(0x40 + rank); }

bool holds_only(const std::byte* from, std::byte value) {
  return std::all_of(from, from + kBytes, [=](std::byte byte) { return byte == value; });
}

Script read_and_compare(Member& member, int other) {
  std::byte* const got = member.region.base + kBytes;
  std::memset(got, 0xEE, kBytes);
  co_await member.get(other, 0, {got, kBytes, member.region.id});
  EXPECT_TRUE(holds_only(got, value_of(other))) << "of rank " << other;
}

Posted put_first_bytes(Member& member, Ticket* ticket) {
  std::byte* const mine = member.region.base + kBytes;
  std::memset(mine, 0x99, 100);
  return member.transport.put(member.peer(kOwner), 0, {mine, 100, member.region.id},
                              {member.region_of(kOwner), 0, 100}, ticket);
}

Posted signal_first_line(Member& member, Ticket*) {
  return member.transport.signal(member.peer(kOwner), 0, {member.region_of(kOwner), 0, kLineBytes},
                                 1, Header{});
}

Posted update_first_word(Member& member, Ticket* ticket) {
  return member.transport.update(
      member.peer(kOwner), 0, {member.region_of(kOwner), 0, kWordBytes}, Update::add(1),
      {member.region.base + kBytes, kWordBytes, member.region.id}, ticket);
}

using Attempt = std::function<Posted(Member&, Ticket*)>;

void expect_that_it_dies(Member& member, const Attempt& attempt) {
  Ticket ticket;
  EXPECT_DEATH(attempt(member, &ticket), member.kind.is_simulated ? "takes_" : "");
}

Script try_it(Member& member, const Attempt& attempt) {
  if (member.kind.trespasser == Trespasser::Dies) {
    expect_that_it_dies(member, attempt);
    co_return;
  }
  Ticket ticket;
  AWAIT(member, attempt(member, &ticket) != Posted::Full);
  AWAIT(member, ticket.done());
  // Once this is answered, or refused, the owner has what came before it.
  co_await member.get(kOwner, 0, {member.region.base + kBytes, kBytes, member.region.id});
}

int trespasser_of(const Member& member) { return member.world - 1; }

// Whether the other is the trespasser's victim, or this rank is.
bool is_at_odds_with(const Member& member, int other) {
  const int trespasser = trespasser_of(member);
  return member.rank == trespasser ? other == kOwner : member.rank == kOwner && other == trespasser;
}

// The last rank tries it; then all read what they still must be able to.
Script trespass(Member& member, const Attempt& attempt) {
  co_await member.meet();
  co_await member.share(2 * kBytes, Access::ReadOnly);
  std::memset(member.region.base, static_cast<int>(value_of(member.rank)), kBytes);
  co_await member.gather("filled");
  if (member.rank == trespasser_of(member)) co_await try_it(member, attempt);
  co_await member.gather("tried");
  for (int turns = 0; turns < 20; ++turns) co_await member.turn();
  EXPECT_TRUE(holds_only(member.region.base, value_of(member.rank)));
  for (int other = 0; other < member.world; ++other) {
    if (is_at_odds_with(member, other)) continue;
    co_await read_and_compare(member, other);
    EXPECT_TRUE(member.transport.peer_status(member.peer(other)).ok());
  }
}

bool has_others(const Kind& kind, int world) {
  return world > 1 && kind.trespasser != Trespasser::IsOwner;
}

Script put(Member& member) {
  co_await trespass(member, put_first_bytes);
  for (int other = 0; other < member.world; ++other) {
    if (member.kind.trespasser != Trespasser::IsLost || !is_at_odds_with(member, other)) continue;
    AWAIT(member, !member.transport.peer_status(member.peer(other)).ok());
    EXPECT_EQ(member.transport.peer_status(member.peer(other)).code(), StatusCode::PeerFailed);
  }
  co_await member.gather("nobody leaves before all have looked");
}

TEST_P(Contract, APutIntoWhatIsForGetsAloneChangesNothingAndLosesThePutter) {
  if (has_others(kind(), world())) run(3, put);
}

// Over verbs the owner passes it over, over tcp it gives the connection up: both is right.
Script signal(Member& member) {
  co_await trespass(member, signal_first_line);
  co_await member.gather("nobody leaves before all have looked");
}

TEST_P(Contract, ASignalIntoWhatIsForGetsAloneChangesNothing) {
  if (has_others(kind(), world())) run(3, signal);
}

Script update(Member& member) {
  if (!member.transport.info().has_updates) co_return;
  co_await trespass(member, update_first_word);
  co_await member.gather("nobody leaves before all have looked");
}

TEST_P(Contract, AnUpdateOfWhatIsForGetsAloneChangesNothing) {
  if (has_others(kind(), world())) run(3, update);
}

}  // namespace
}  // namespace rdmacoll::rights_test
