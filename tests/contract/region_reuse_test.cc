// The contract of transport.h: when the id of a region may be given to other memory. No write of
// its earlier use reaches that memory.
#include <cstring>
#include <string>
#include <vector>

#include "tests/contract/contract.h"
#include "tests/contract/make_region.h"

namespace rdmacoll::region_reuse_test {
namespace {

constexpr uint64_t kLines = kLineBytes * Board::kRanks;
constexpr uint64_t kPutBytes = 3000;
constexpr uint64_t kRegionBytes = kLines + Board::kRanks * kPutBytes + kPutBytes;

RemoteSlice place_of(const Member& member, int other) {
  return {member.region_of(other), kLines + static_cast<uint64_t>(member.rank) * kPutBytes,
          kPutBytes};
}

bool is_zeroed(const Region& region) {
  const std::vector<std::byte> zeros(region.bytes);
  return std::memcmp(region.base, zeros.data(), zeros.size()) == 0;
}

std::byte* source_of(const Member& member) {
  return member.region.base + kLines + Board::kRanks * kPutBytes;
}

// Posts a put and a signal to a rank, and waits for the completion of neither.
Script put_and_signal(Member& member, int other) {
  const LocalSlice source{source_of(member), kPutBytes, member.region.id};
  Ticket ticket;
  AWAIT(member, member.transport.put(member.peer(other), 1, source, place_of(member, other),
                                     &ticket) != Posted::Full);
  const RemoteSlice line{member.region_of(other), kLineBytes * static_cast<uint64_t>(member.rank),
                         kLineBytes};
  AWAIT(member, member.transport.signal(member.peer(other), 1, line, 1, Header{}) != Posted::Full);
}

// Gives the id to other memory, and opens that of all ranks.
Script share_again(Member& member) {
  Result<MadeRegion> again = make_region(member.transport, member.region.id, kRegionBytes);
  REQUIRE_OK(again.status());
  member.region = again.value();
  co_await member.gather(member.region.key);
  const std::vector<std::string> keys = member.gathered;
  for (int other = 0; other < member.world; ++other) {
    REQUIRE_OK(member.transport.offer_region(member.peer(other), member.region.id, kNoNote));
  }
  co_await member.gather("offered");
  for (int other = 0; other < member.world; ++other) {
    REQUIRE_OK(
        member.transport
            .open_region(member.peer(other), keys[static_cast<size_t>(other)], member.deadline())
            .status());
  }
}

// Every rank closes the regions right after its last put and signal. These may still be in flight
// when the owner wants to reuse the id.
Script close_with_writes_under_way(Member& member) {
  co_await member.meet();
  co_await member.share(kRegionBytes);
  for (int use = 0; use < 3; ++use) {
    co_await member.gather("open everywhere");
    std::memset(source_of(member), 0x77, kPutBytes);
    for (int other = 0; other < member.world; ++other) co_await put_and_signal(member, other);
    member.transport.release_region(member.region.id, Release::Keep);
    for (int other = 0; other < member.world; ++other) {
      member.transport.close_region(member.peer(other), member.region_of(other));
    }
    AWAIT(member, member.transport.is_reusable(member.region.id));
    co_await share_again(member);
    for (int turns = 0; turns < 50; ++turns) co_await member.turn();
    EXPECT_TRUE(is_zeroed(member.region)) << "a late write came into the next use of the id";
  }
}

TEST_P(Contract, LateWritesDoNotReachTheNextUseOfAnId) { run(300, close_with_writes_under_way); }

// The owner's id stays taken while one rank has the region open. No call blocks on that rank.
Script hold_it_open(Member& member) {
  co_await member.meet();
  co_await member.share(kRegionBytes);
  const int holder = member.world - 1;
  co_await member.gather("open everywhere");
  member.transport.release_region(member.region.id, Release::Keep);
  for (int other = 0; other < member.world; ++other) {
    if (member.rank == holder) continue;
    member.transport.close_region(member.peer(other), member.region_of(other));
  }
  for (int turns = 0; turns < 100; ++turns) {
    EXPECT_FALSE(member.transport.is_reusable(member.region.id));
    co_await member.turn();
  }
  co_await member.gather("still taken");
  if (member.rank == holder) {
    for (int other = 0; other < member.world; ++other) {
      member.transport.close_region(member.peer(other), member.region_of(other));
    }
  }
  AWAIT(member, member.transport.is_reusable(member.region.id));
  co_await member.gather("free");
}

TEST_P(Contract, AnIdStaysTakenWhileSomebodyHasTheRegionOpen) { run(50, hold_it_open); }

// A transport over which nobody is met is not driven.
Script release_before_meeting(Member& member) {
  const Result<MadeRegion> made = member.make(kRegionBytes);
  REQUIRE_OK(made.status());
  member.transport.release_region(0, Release::Keep);
  EXPECT_TRUE(member.transport.is_reusable(0));
  co_await member.gather("done");
}

TEST_P(Contract, AnIdIsFreeAtOnceWhereNobodyIsMet) { run(1, release_before_meeting); }

// A group that could not be made: the ranks were offered the region, and none of them opens it.
Script never_open_it(Member& member) {
  co_await member.meet();
  Result<MadeRegion> made = member.make(kRegionBytes);
  REQUIRE_OK(made.status());
  co_await member.gather(made.value().key);
  const std::vector<std::string> keys = member.gathered;
  for (int other = 0; other < member.world; ++other) {
    REQUIRE_OK(member.transport.offer_region(member.peer(other), made.value().id, kNoNote));
  }
  co_await member.gather("offered");
  member.transport.release_region(made.value().id, Release::Withdraw);
  // Over shared memory a rank answers only in set-up calls, of which is_reusable() is one. So each
  // rank calls it until all ids are free.
  const int round = member.next_round++;
  for (int free = 0; free < member.world;) {
    if (member.transport.is_reusable(made.value().id) &&
        !member.board.published(round, member.rank)) {
      member.board.publish(round, member.rank, "free");
    }
    co_await member.turn();
    if (member.board.published(round, free)) ++free;
  }
  for (int other = 0; other < member.world; ++other) {
    const Status late =
        member.transport
            .open_region(member.peer(other), keys[static_cast<size_t>(other)], member.deadline())
            .status();
    EXPECT_EQ(late.code(), StatusCode::PeerFailed) << late.message();
    EXPECT_NE(late.message().find("taken its memory back"), std::string::npos) << late.message();
  }
  co_await member.gather("nobody leaves before all have tried");
}

TEST_P(Contract, AnIdIsFreeWhereNobodyEverOpenedTheRegion) { run(50, never_open_it); }

// A rank that left with the region open writes no more.
Script leave_it_open(Member& member) {
  co_await member.meet();
  co_await member.share(kRegionBytes);
  co_await member.gather("open everywhere");
  if (member.rank != 0) {
    std::memset(source_of(member), 0x77, kPutBytes);
    for (int other = 0; other < member.world; ++other) co_await put_and_signal(member, other);
    member.leave();
    co_return;
  }
  member.transport.release_region(member.region.id, Release::Keep);
  member.transport.close_region(member.peer(0), member.region.id);
  AWAIT(member, member.transport.is_reusable(member.region.id));
  const Region again = make_region(member.transport, member.region.id, kRegionBytes).take();
  for (int turns = 0; turns < 300; ++turns) co_await member.turn();
  EXPECT_TRUE(is_zeroed(again));
}

TEST_P(Contract, AnIdIsFreeOnceThoseThatHadTheRegionOpenAreGone) { run(100, leave_it_open); }

}  // namespace
}  // namespace rdmacoll::region_reuse_test
