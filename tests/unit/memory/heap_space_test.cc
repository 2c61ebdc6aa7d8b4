// The books of a heap: nothing is handed out twice, all of it comes back.
#include "csrc/memory/heap_space.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace rdmacoll::heap_space_test {
namespace {

constexpr uint64_t kLine = HeapSpace::kAlignment;

TEST(HeapSpace, HasNothingUntilItIsExtended) {
  HeapSpace space(100 * kLine);
  EXPECT_EQ(space.take(1), std::nullopt);
  const auto extent = space.extend(1, 10 * kLine);
  ASSERT_TRUE(extent.has_value());
  EXPECT_EQ(extent->offset, 0u);
  EXPECT_EQ(extent->bytes, 10 * kLine);
  EXPECT_EQ(space.take(1), 0u);
  EXPECT_EQ(space.take(0), kLine);
  EXPECT_EQ(space.take(kLine + 1), 2 * kLine);
  EXPECT_EQ(space.taken(), 4 * kLine);
}

TEST(HeapSpace, ExtentsDoubleAndEndWithTheCapacity) {
  HeapSpace space(100 * kLine);
  EXPECT_EQ(space.extend(1, 10 * kLine)->bytes, 10 * kLine);
  EXPECT_EQ(space.extend(1, 10 * kLine)->bytes, 10 * kLine);
  EXPECT_EQ(space.extend(1, 10 * kLine)->bytes, 20 * kLine);
  EXPECT_EQ(space.extend(50 * kLine, 10 * kLine)->bytes, 50 * kLine);
  EXPECT_EQ(space.extend(11 * kLine, kLine), std::nullopt);
  EXPECT_EQ(space.extend(10 * kLine, kLine)->bytes, 10 * kLine);
  EXPECT_EQ(space.extend(1, kLine), std::nullopt);
  EXPECT_EQ(space.extended(), space.capacity());
}

// A device knows each extent by a key of its own: nothing may lie in two.
TEST(HeapSpace, FreePartsOfTwoExtentsAreNotJoined) {
  HeapSpace space(100 * kLine);
  space.extend(1, 4 * kLine);
  space.extend(1, 4 * kLine);
  const auto first = space.take(4 * kLine);
  const auto second = space.take(4 * kLine);
  ASSERT_TRUE(first && second);
  EXPECT_NE(space.give(*first), 0u);
  EXPECT_NE(space.give(*second), 0u);
  EXPECT_EQ(space.take(8 * kLine), std::nullopt);
  EXPECT_TRUE(space.take(4 * kLine).has_value());
}

TEST(HeapSpace, WhatIsNotTakenCannotBeGiven) {
  HeapSpace space(10 * kLine);
  space.extend(1, 10 * kLine);
  const auto offset = space.take(3 * kLine);
  ASSERT_TRUE(offset.has_value());
  EXPECT_EQ(space.give(*offset + kLine), 0u);
  EXPECT_EQ(space.give(*offset), 3 * kLine);
  EXPECT_EQ(space.give(*offset), 0u);
}

TEST(HeapSpace, SizesThatNothingHolds) {
  HeapSpace space(10 * kLine);
  space.extend(1, 10 * kLine);
  EXPECT_EQ(space.take(~uint64_t{0}), std::nullopt);
  EXPECT_EQ(space.extend(~uint64_t{0}, kLine), std::nullopt);
}

TEST(HeapSpace, PartsNeverOverlapAndAllComesBack) {
  std::mt19937_64 random(5);
  HeapSpace space(4096 * kLine);
  std::map<uint64_t, uint64_t> taken;  // end by offset
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 || taken.empty()) {
      const uint64_t bytes = 1 + random() % (random() % 8 == 0 ? 200 * kLine : 5 * kLine);
      auto offset = space.take(bytes);
      if (!offset && space.extend(bytes, 64 * kLine)) offset = space.take(bytes);
      if (!offset) continue;
      ASSERT_EQ(*offset % kLine, 0u);
      ASSERT_LE(*offset + bytes, space.extended());
      const auto next = taken.lower_bound(*offset);
      ASSERT_TRUE(next == taken.end() || *offset + bytes <= next->first);
      ASSERT_TRUE(next == taken.begin() || std::prev(next)->second <= *offset);
      taken[*offset] = *offset + bytes;
    } else {
      auto victim = taken.begin();
      std::advance(victim, static_cast<long>(random() % taken.size()));
      ASSERT_NE(space.give(victim->first), 0u);
      taken.erase(victim);
    }
  }
  for (const auto& [offset, end] : taken) ASSERT_NE(space.give(offset), 0u);
  EXPECT_EQ(space.taken(), 0u);
  // All of an extent is one part again.
  EXPECT_EQ(space.take(64 * kLine), 0u);
}

}  // namespace
}  // namespace rdmacoll::heap_space_test
