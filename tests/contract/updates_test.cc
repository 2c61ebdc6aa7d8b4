// The contract of transport.h: updates of a word by many at a time, of which none is lost, and of
// memory that takes none.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "tests/contract/contract.h"

namespace rdmacoll::updates_test {
namespace {

constexpr int kOwner = 0;
constexpr uint64_t kCounter = 4096 - kWordBytes;  // offsets in the owner's region
constexpr uint64_t kLock = 4096 + kWordBytes;
constexpr uint64_t kGuarded = 2 * kLock;
constexpr uint64_t kRegionBytes = 3 * 4096;

std::atomic<uint64_t>& word_at(const Member& member, uint64_t offset) {
  return *reinterpret_cast<std::atomic<uint64_t>*>(member.region.base + offset);
}

// Every rank may keep several under way, each with a place for what was there before.
struct UpdateUnderWay {
  uint64_t* before;
  Ticket ticket{};
};

Script post_update(Member& member, uint64_t offset, Update update, UpdateUnderWay* one) {
  const RemoteSlice word{member.region_of(kOwner), offset, kWordBytes};
  const LocalSlice before{reinterpret_cast<std::byte*>(one->before), kWordBytes, member.region.id};
  AWAIT(member, member.transport.update(member.peer(kOwner), 0, word, update, before,
                                        &one->ticket) != Posted::Full);
}

Script update_and_wait(Member& member, uint64_t offset, Update update, uint64_t* before) {
  UpdateUnderWay one{before};
  co_await post_update(member, offset, update, &one);
  AWAIT(member, one.ticket.done());
}

// Where the owner keeps its words, others have room for what comes back.
uint64_t* places(const Member& member) {
  return reinterpret_cast<uint64_t*>(member.region.base + kGuarded + kLineBytes);
}

uint64_t adds_of(const Member& member) { return member.kind.is_simulated ? 10 : 150; }

Script add_to_one_word(Member& member) {
  if (!member.transport.info().has_updates) co_return;
  co_await member.meet();
  co_await member.share(kRegionBytes);
  std::deque<UpdateUnderWay> updates;  // which does not move them
  for (uint64_t i = 0; i < adds_of(member); ++i) {
    updates.push_back({places(member) + i});
    co_await post_update(member, kCounter, Update::add(1), &updates.back());
  }
  const auto world = static_cast<uint64_t>(member.world);
  for (const UpdateUnderWay& one : updates) AWAIT(member, one.ticket.done());
  std::vector<uint64_t> mine;
  for (const UpdateUnderWay& one : updates) mine.push_back(*one.before);
  // All ranks' values, in parts that a cell of the board holds.
  std::vector<uint64_t> all;
  constexpr size_t kInACell = 100;
  for (size_t at = 0; at < mine.size(); at += kInACell) {
    const size_t count = std::min(kInACell, mine.size() - at);
    co_await member.gather(std::string(reinterpret_cast<const char*>(&mine[at]), count * 8));
    for (const std::string& of_rank : member.gathered) {
      const size_t before = all.size();
      all.resize(before + of_rank.size() / 8);
      std::memcpy(&all[before], of_rank.data(), of_rank.size());
    }
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.size(), world * adds_of(member));
  for (uint64_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i], i);
    if (all[i] != i) break;
  }
  if (member.rank == kOwner) {
    EXPECT_EQ(word_at(member, kCounter).load(), world * adds_of(member));
    EXPECT_EQ(word_at(member, kCounter - kWordBytes).load(), 0u);
    EXPECT_EQ(word_at(member, kCounter + kWordBytes).load(), 0u);
  }
  co_await member.gather("done");
}

TEST_P(Contract, AddsOfAllToOneWordGiveEachANumberOfItsOwn) { run(100, add_to_one_word); }

// Whoever has exchanged 0 for its own number holds the lock, and alone adds to what it guards.
Script lock_by_exchange(Member& member) {
  if (!member.transport.info().has_updates) co_return;
  co_await member.meet();
  co_await member.share(kRegionBytes);
  const uint64_t rounds = member.kind.is_simulated ? 4 : 20;
  const auto me = static_cast<uint64_t>(member.rank) + 1;
  uint64_t* const before = places(member);
  for (uint64_t round = 0; round < rounds; ++round) {
    do {
      co_await update_and_wait(member, kLock, Update::compare_swap(0, me), before);
      EXPECT_LE(*before, static_cast<uint64_t>(member.world));
      EXPECT_NE(*before, me);
    } while (*before != 0);
    co_await update_and_wait(member, kGuarded, Update::add(1), before);
    const uint64_t entered = *before;
    co_await update_and_wait(member, kGuarded, Update::add(1), before);
    EXPECT_EQ(*before, entered + 1) << "somebody else has the lock, too";
    co_await update_and_wait(member, kLock, Update::compare_swap(me, 0), before);
    EXPECT_EQ(*before, me);
  }
  co_await member.gather("done");
  if (member.rank == kOwner) {
    EXPECT_EQ(word_at(member, kLock).load(), 0u);
    EXPECT_EQ(word_at(member, kGuarded).load(), 2 * rounds * static_cast<uint64_t>(member.world));
  }
  co_await member.gather("nobody leaves before all have looked");
}

TEST_P(Contract, OneAtATimeExchangesWhatItExpects) { run(20, lock_by_exchange); }

// Numbers are added as they wrap: a negative one is subtracted.
Script add_any_number(Member& member) {
  if (!member.transport.info().has_updates) co_return;
  co_await member.meet();
  co_await member.share(kRegionBytes);
  if (member.rank == member.world - 1) {
    uint64_t* const before = places(member);
    co_await update_and_wait(member, kCounter, Update::add(~uint64_t{0}), before);
    EXPECT_EQ(*before, 0u);
    co_await update_and_wait(member, kCounter, Update::add(7), before);
    EXPECT_EQ(*before, ~uint64_t{0});
    co_await update_and_wait(member, kCounter, Update::compare_swap(5, 9), before);
    EXPECT_EQ(*before, 6u);
    co_await update_and_wait(member, kCounter, Update::add(0), before);
    EXPECT_EQ(*before, 6u) << "what was not expected was exchanged";
  }
  co_await member.gather("done");
}

TEST_P(Contract, WhatIsAddedWrapsAndWhatIsNotExpectedStays) { run(20, add_any_number); }

}  // namespace
}  // namespace rdmacoll::updates_test
