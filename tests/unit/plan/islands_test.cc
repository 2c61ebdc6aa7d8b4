// Islands: a partition of the ranks, from keys or a shape.
#include "csrc/plan/islands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/limits.h"

namespace rdmacoll::islands_test {
namespace {

using Ranks = std::vector<uint16_t>;

Ranks members(const Islands& islands, uint32_t island) {
  const std::span<const uint16_t> ranks = islands.members(island);
  return {ranks.begin(), ranks.end()};
}

// What all of them hold.
void expect_partition(const Islands& islands) {
  uint32_t ranks = 0, largest = 0, lowest = 0;
  for (uint32_t island = 0; island < islands.count(); ++island) {
    const Ranks all = members(islands, island);
    ASSERT_EQ(all.size(), islands.size(island));
    ASSERT_FALSE(all.empty());
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
    EXPECT_TRUE(island == 0 || all[0] > lowest) << "numbered by their lowest ranks";
    lowest = all[0];
    for (uint16_t place = 0; place < all.size(); ++place) {
      EXPECT_EQ(islands.of(all[place]), island);
      EXPECT_EQ(islands.place(all[place]), place);
    }
    ranks += islands.size(island);
    largest = std::max(largest, islands.size(island));
  }
  EXPECT_EQ(ranks, islands.world());
  EXPECT_EQ(largest, islands.largest());
}

TEST(Islands, EqualKeysShareOne) {
  const Islands islands = Islands::by_key({"b", "a", "b", "c", "a", "b"});
  expect_partition(islands);
  EXPECT_EQ(islands.count(), 3u);
  EXPECT_EQ(members(islands, 0), (Ranks{0, 2, 5}));
  EXPECT_EQ(members(islands, 1), (Ranks{1, 4}));
  EXPECT_EQ(members(islands, 2), (Ranks{3}));
  EXPECT_TRUE(islands.share(0, 5));
  EXPECT_TRUE(islands.share(3, 3));
  EXPECT_FALSE(islands.share(0, 1));
  EXPECT_EQ(islands.place(5), 2u);
  EXPECT_EQ(islands.largest(), 3u);
  EXPECT_FALSE(islands.all_mapped());
  EXPECT_TRUE(islands.has_levels());
}

TEST(Islands, AnEmptyKeyIsAlone) {
  const Islands islands = Islands::by_key({"", "a", "", "a", ""});
  expect_partition(islands);
  EXPECT_EQ(islands.count(), 4u);
  EXPECT_FALSE(islands.share(0, 2));
  EXPECT_TRUE(islands.share(1, 3));
  EXPECT_EQ(members(islands, 2), (Ranks{2}));
  EXPECT_EQ(members(islands, 3), (Ranks{4}));
  EXPECT_EQ(Islands::by_key({"", ""}).count(), 2u);
  EXPECT_TRUE(Islands::by_key({""}).all_mapped()) << "with itself";
}

TEST(Islands, TogetherOrApart) {
  for (const uint32_t world : {1u, 2u, 7u, kMaxWorld}) {
    const Islands together = Islands::together(world), apart = Islands::apart(world);
    expect_partition(together);
    expect_partition(apart);
    EXPECT_EQ(together.world(), world);
    EXPECT_EQ(apart.world(), world);
    EXPECT_TRUE(together.all_mapped());
    EXPECT_EQ(together.largest(), world);
    EXPECT_EQ(apart.count(), world);
    EXPECT_EQ(apart.largest(), 1u);
    EXPECT_EQ(apart.all_mapped(), world == 1);
    EXPECT_FALSE(together.has_levels());
    EXPECT_FALSE(apart.has_levels());
  }
}

TEST(Islands, AShapeComesBack) {
  for (const char* shape : {"1", "4", "2x1", "2x4", "3+1", "1+3", "2x4+1", "1+2x4", "2x3+2x2+5",
                            "2+1+2", "64x64", "4096", "4x4096", "16384x1"}) {
    auto islands = Islands::of_shape(shape);
    ASSERT_TRUE(islands.ok()) << islands.status().message();
    expect_partition(islands.value());
    EXPECT_EQ(islands.value().shape(), shape);
  }
}

TEST(Islands, OneShapeHasOneName) {
  for (const auto& [given, shape] :
       std::vector<std::pair<std::string, std::string>>{{"1x4", "4"},
                                                        {"4+4", "2x4"},
                                                        {"2x4+4+1", "3x4+1"},
                                                        {"1+1+1", "3x1"},
                                                        {"02x04", "2x4"}}) {
    EXPECT_EQ(Islands::of_shape(given).value().shape(), shape) << given;
  }
  EXPECT_EQ(Islands::by_key({"a", "b", "a", "b", ""}).shape(), "2x2+1");
}

TEST(Islands, OfAShapeTheRanksOfAnIslandAreInARow) {
  const Islands islands = Islands::of_shape("2x3+1").take();
  EXPECT_EQ(islands.world(), 7u);
  EXPECT_EQ(members(islands, 0), (Ranks{0, 1, 2}));
  EXPECT_EQ(members(islands, 1), (Ranks{3, 4, 5}));
  EXPECT_EQ(members(islands, 2), (Ranks{6}));
}

TEST(Islands, WhatIsNoShapeIsRefused) {
  for (const char* shape : {"",
                            "+",
                            "x",
                            "2x",
                            "x2",
                            "2+",
                            "+2",
                            "2++2",
                            "2x2x2",
                            "0",
                            "0x2",
                            "2x0",
                            "2+0",
                            "-1",
                            "+-1",
                            " 2",
                            "2 ",
                            "2 x4",
                            "2X4",
                            "2x4,1",
                            "two",
                            "1e3",
                            "0x10",
                            "4294967297",
                            "4294967296x1",
                            "99999999999999999999"}) {
    const Status status = Islands::of_shape(shape).status();
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << shape;
    EXPECT_NE(status.message().find("give 2x4"), std::string::npos) << status.message();
  }
}

TEST(Islands, TooManyRanksAreRefused) {
  for (const char* shape : {"16385", "16385x1", "4096x4096", "4097", "4x4096+1", "16384x1+1",
                            "128x128+1", "4096+4096x4096"}) {
    const Status status = Islands::of_shape(shape).status();
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << shape;
    EXPECT_NE(status.message().find(std::to_string(kMaxWorld)), std::string::npos);
  }
  const std::string long_one(10'000, '9');
  EXPECT_LT(Islands::of_shape(long_one).status().message().size(), 300u);
}

}  // namespace
}  // namespace rdmacoll::islands_test
