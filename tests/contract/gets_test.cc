// The contract of transport.h: gets of every size, from every place, many at a time, of memory that
// its owner writes, releases or leaves behind.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "tests/contract/contract.h"
#include "tests/how_much.h"

namespace rdmacoll::gets_test {
namespace {

constexpr uint64_t kGuardBytes = 64;  // on either side of what is got
constexpr auto kGuard = std::byte{0xEE};

std::byte byte_of(int rank, uint64_t offset) {
  return static_cast<std::byte>(offset * 131 + offset / 251 + static_cast<uint64_t>(rank) * 7);
}

int next(const Member& member) { return (member.rank + 1) % member.world; }

// Everybody's region, which holds byte_of(), and one for each to get into.
Script share_bytes(Member& member, uint64_t bytes, MadeRegion* landing) {
  co_await member.meet();
  co_await member.share(bytes);
  Result<MadeRegion> made = member.make(bytes + 4 * kGuardBytes);
  REQUIRE_OK(made.status());
  *landing = made.value();
  for (uint64_t i = 0; i < bytes; ++i) member.region.base[i] = byte_of(member.rank, i);
  co_await member.gather("filled");
}

void expect_got(const std::byte* got, int rank, uint64_t offset, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) {
    if (got[i] == byte_of(rank, offset + i)) continue;
    ADD_FAILURE() << "byte " << i << " of " << bytes << " from " << offset << " on";
    return;
  }
}

void expect_guard(const std::byte* guard) {
  EXPECT_TRUE(std::all_of(guard, guard + kGuardBytes, [](std::byte b) { return b == kGuard; }));
}

std::vector<uint64_t> sizes(const Kind& kind) {
  std::vector<uint64_t> sizes{1, 7, 8, 63, 64, 4095, 4097};
  sizes.insert(sizes.end(), {kBulkBytes - 1, kBulkBytes, kBulkBytes + 1, 3 * kBulkBytes + 5});
  if (!kind.is_simulated) sizes.push_back((1 << 20) + 13);
  if (kind.maps) sizes.push_back((5 << 20) + 3);  // so long it is streamed past the caches
  return sizes;
}

constexpr uint64_t kOffsets[] = {0, 1, 8, 61, 4093};

Script get_all_sizes(Member& member) {
  const std::vector<uint64_t> all = sizes(member.kind);
  MadeRegion landing;
  co_await share_bytes(member, all.back() + 8192, &landing);
  size_t turn = 0;
  for (const uint64_t bytes : all) {
    for (int time = 0; time < 2; ++time) {
      const uint64_t offset = kOffsets[turn++ % std::size(kOffsets)];
      std::byte* const got = landing.base + kGuardBytes + turn % 11;
      std::memset(got - kGuardBytes, static_cast<int>(kGuard), bytes + 2 * kGuardBytes);
      co_await member.get(next(member), offset, {got, bytes, landing.id});
      expect_got(got, next(member), offset, bytes);
      expect_guard(got - kGuardBytes);
      expect_guard(got + bytes);
    }
  }
  co_await member.gather("done");
}

TEST_P(Contract, AGetOfAnySizeFromAnyPlaceGivesItsBytesAndNoOthers) { run(3, get_all_sizes); }

// None is waited for before all are posted.
Script get_many(Member& member) {
  constexpr uint64_t kGets = 200;
  constexpr uint64_t kApart = 2048;
  MadeRegion landing;
  co_await share_bytes(member, kGets * kApart, &landing);
  std::minstd_rand random(static_cast<unsigned>(member.seed));
  struct Get {
    uint64_t offset, bytes;
    std::byte* got;
    Ticket ticket;
  };
  std::deque<Get> gets;  // which does not move them
  for (uint64_t i = 0; i < kGets; ++i) {
    const uint64_t bytes = 1 + random() % kApart;
    const uint64_t offset = random() % (kGets * kApart - bytes);
    gets.push_back({offset, bytes, landing.base + i * kApart, Ticket()});
    co_await member.post_get(next(member), offset, {gets.back().got, bytes, landing.id},
                             &gets.back().ticket);
  }
  for (const Get& get : gets) {
    AWAIT(member, get.ticket.done());
    expect_got(get.got, next(member), get.offset, get.bytes);
  }
  co_await member.gather("done");
}

TEST_P(Contract, ManyGetsAreUnderWayAtOnce) { run(10, get_many); }

// --- of memory that its owner writes -------------------------------------------------------------

constexpr uint64_t kOnes = 0x0101010101010101;
constexpr uint64_t kRounds = 60;
constexpr uint64_t kWritten = 3 * kBulkBytes;  // between two guards of as many words as in a line

// Each byte of a word is the same, and never 0, nor above kMost.
constexpr uint64_t kMost = 100;

void write_round(const Member& member, uint64_t round) {
  auto* const words = reinterpret_cast<std::atomic<uint64_t>*>(member.region.base + kGuardBytes);
  const uint64_t word = kOnes * (1 + round % kMost);
  for (uint64_t i = 0; i < kWritten / 8; ++i) words[i].store(word, std::memory_order_relaxed);
}

bool is_of_a_round(std::byte byte) { return byte >= std::byte{1} && byte <= std::byte{kMost}; }

// A large one from an odd place, of which each byte was there; and a small one, whose words were.
Script get_what_is_written(Member& member) {
  co_await member.meet();
  co_await member.share(kWritten + 2 * kGuardBytes);
  Result<MadeRegion> landing = member.make(kWritten);
  REQUIRE_OK(landing.status());
  std::memset(member.region.base, static_cast<int>(kGuard), member.region.bytes);
  write_round(member, 0);
  co_await member.gather("filled");
  std::byte* const got = landing.value().base;
  constexpr uint64_t kLarge = kWritten - 5;
  constexpr uint64_t kSmall = kBulkBytes / 2;
  // Where memory is mapped, threads of one process race for what is large: that is the point.
  const bool may_tear = !(kThreadSanitized && member.kind.maps);
  for (uint64_t round = 1; round <= kRounds; ++round) {
    Ticket large, small;
    if (may_tear) {
      co_await member.post_get(next(member), kGuardBytes + 3, {got, kLarge, landing.value().id},
                               &large);
    }
    while (!large.done()) {
      write_round(member, round);
      co_await member.turn();
    }
    EXPECT_TRUE(!may_tear || std::all_of(got, got + kLarge, is_of_a_round));
    co_await member.post_get(next(member), kGuardBytes, {got, kSmall, landing.value().id}, &small);
    while (!small.done()) {
      write_round(member, round);
      co_await member.turn();
    }
    const auto* const words = reinterpret_cast<const uint64_t*>(got);
    EXPECT_TRUE(std::all_of(words, words + kSmall / 8, [](uint64_t word) {
      return word == kOnes * (word & 0xFF) && is_of_a_round(static_cast<std::byte>(word & 0xFF));
    }));
  }
  expect_guard(member.region.base);
  expect_guard(member.region.base + kGuardBytes + kWritten);
  co_await member.gather("done");
}

TEST_P(Contract, AGetOfWhatIsBeingWrittenGivesWholeWordsOfItAndNothingElse) {
  run(3, get_what_is_written);
}

// --- of memory that its owner takes back, or leaves behind ---------------------------------------

// It stays until it is closed, which may be while a get is under way.
Script get_what_is_released(Member& member) {
  constexpr uint64_t kBytes = 2 * kBulkBytes + 1;
  MadeRegion landing;
  co_await share_bytes(member, kBytes, &landing);
  member.transport.release_region(member.region.id, Release::Withdraw);
  co_await member.gather("released");
  co_await member.get(next(member), 0, {landing.base, kBytes, landing.id});
  expect_got(landing.base, next(member), 0, kBytes);
  std::memset(landing.base, 0, kBytes);
  Ticket ticket;
  co_await member.post_get(next(member), 0, {landing.base, kBytes, landing.id}, &ticket);
  for (int other = 0; other < member.world; ++other) {
    member.transport.close_region(member.peer(other), member.region_of(other));
  }
  AWAIT(member, ticket.done());
  expect_got(landing.base, next(member), 0, kBytes);
  const int round = member.next_round++;
  for (int free = 0; free < member.world;) {
    if (member.transport.is_reusable(member.region.id) &&
        !member.board.published(round, member.rank)) {
      member.board.publish(round, member.rank, "free");
    }
    co_await member.turn();
    if (member.board.published(round, free)) ++free;
  }
  for (int other = 0; other < member.world; ++other) {
    EXPECT_TRUE(member.transport.peer_status(member.peer(other)).ok());
  }
  co_await member.gather("nobody leaves before all have looked");
}

TEST_P(Contract, WhatIsReleasedIsGotUntilItIsClosedAndWhatIsUnderWayThenComes) {
  run(20, get_what_is_released);
}

// Rank 0 leaves while the others get from it; they ask it for more when it has.
Script get_of_the_gone(Member& member) {
  constexpr uint64_t kBytes = 3 * kBulkBytes;
  constexpr size_t kGets = 20;
  MadeRegion landing;
  co_await share_bytes(member, kBytes, &landing);
  if (member.rank == 0) {
    member.leave();
    co_await member.gather("done");
    co_return;
  }
  const PeerId gone = member.peer(0);
  std::vector<Ticket> tickets(kGets);
  for (Ticket& ticket : tickets) {
    co_await member.post_get(0, 0, {landing.base, kBytes, landing.id}, &ticket);
  }
  AWAIT(member, !member.transport.peer_status(gone).ok());
  EXPECT_EQ(member.transport.peer_status(gone).code(), StatusCode::PeerFailed);
  co_await member.get(0, 0, {landing.base, kBytes, landing.id});
  for (const Ticket& ticket : tickets) AWAIT(member, ticket.done());
  REQUIRE_OK(member.transport.fence(gone, member.deadline()));
  // Nothing comes from there any more.
  std::memset(landing.base, static_cast<int>(kGuard), kBytes);
  const int alive = member.rank == 1 ? member.world - 1 : 1;
  std::byte* const behind = landing.base + kBytes;
  co_await member.get(alive, 5, {behind, 4 * kGuardBytes, landing.id});
  expect_got(behind, alive, 5, 4 * kGuardBytes);
  EXPECT_TRUE(
      std::all_of(landing.base, landing.base + kBytes, [](std::byte b) { return b == kGuard; }));
  co_await member.gather("done");
}

TEST_P(Contract, GetsOfWhoHasLeftAreOverAndOthersGoOn) {
  if (world() > 1) run(20, get_of_the_gone);
}

}  // namespace
}  // namespace rdmacoll::gets_test
