// ShrinkState: what is read is what was said, or nothing; never a mixture.
#include "csrc/engine/failure/shrink_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace rdmacoll::shrink_state_test {
namespace {

struct Area {
  alignas(kLineBytes) std::byte bytes[shrink_state_bytes(kMaxWorld)] = {};
};

RankSet some_of(uint32_t world, std::mt19937_64& random) {
  RankSet set(world);
  for (uint32_t r = 0; r < world; ++r) set[r] = random() % 3 == 0;
  return set;
}

TEST(ShrinkState, IsReadAsItWasSaid) {
  std::mt19937_64 random(1);
  for (const uint32_t world : {1u, 2u, 63u, 64u, 65u, 4096u, kMaxWorld - 1}) {
    for (const auto& record : {std::string(), std::string("short"), std::string(3500, 'x')}) {
      const ShrinkState said{world - 1, ShrinkStage::Ready, some_of(world, random), record};
      Area area;
      ASSERT_TRUE(said.publish(area.bytes).ok());
      const auto read = ShrinkState::read(area.bytes, world - 1, world);
      ASSERT_TRUE(read.has_value());
      EXPECT_EQ(read->stage, said.stage);
      EXPECT_EQ(read->excluded, said.excluded);
      EXPECT_EQ(read->record, said.record);
      EXPECT_FALSE(ShrinkState::read(area.bytes, world, world)) << "of another rank";
      EXPECT_FALSE(ShrinkState::read(area.bytes, world - 1, world + 1)) << "of another group";
    }
  }
}

TEST(ShrinkState, NothingSaidIsNothingRead) { EXPECT_FALSE(ShrinkState::read(Area().bytes, 0, 4)); }

// A record has as much room whatever the world is, and nothing is written behind the area.
TEST(ShrinkState, OneThatIsTooLongIsRefused) {
  for (const uint32_t world : {1u, 511u, 512u, 513u, kMaxWorld}) {
    const uint64_t bytes = shrink_state_bytes(world);
    EXPECT_EQ(bytes % kLineBytes, 0u) << world;
    for (const uint64_t record : {kShrinkWordsBytes - 32, bytes}) {
      std::vector<std::byte> area(bytes + kLineBytes, std::byte{7});
      const ShrinkState said{0, ShrinkStage::Ready, RankSet(world, true), std::string(record, 'x')};
      const Status status = said.publish(area.data());
      EXPECT_EQ(std::count(area.begin() + static_cast<int64_t>(bytes), area.end(), std::byte{7}),
                static_cast<int64_t>(kLineBytes));
      EXPECT_EQ(status.ok(), record < bytes) << status.message();
      EXPECT_EQ(ShrinkState::read(area.data(), 0, world).has_value(), status.ok());
      if (record < bytes) continue;
      EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << status.message();
    }
  }
}

// Words of the old and the new one in any mixture, as a reader may get them meanwhile.
TEST(ShrinkState, AMixtureOfTwoIsNothing) {
  std::mt19937_64 random(2);
  Area before, after;
  ASSERT_TRUE((ShrinkState{1, ShrinkStage::Ready, {false, false, true}, "one record"})
                  .publish(before.bytes)
                  .ok());
  ASSERT_TRUE(
      (ShrinkState{1, ShrinkStage::Agreeing, {true, false, true}, ""}).publish(after.bytes).ok());
  uint64_t mixtures = 0;
  for (int i = 0; i < 10'000; ++i) {
    Area mixed = before;
    for (size_t at = 0; at < 10 * 8; at += 8) {
      if (random() % 2 == 0) std::memcpy(mixed.bytes + at, after.bytes + at, 8);
    }
    const auto read = ShrinkState::read(mixed.bytes, 1, 3);
    if (!read) {
      ++mixtures;
    } else if (read->stage == ShrinkStage::Ready) {
      EXPECT_EQ(read->record, "one record");
      EXPECT_EQ(read->excluded, (RankSet{false, false, true}));
    } else {
      EXPECT_EQ(read->record, "");
      EXPECT_EQ(read->excluded, (RankSet{true, false, true}));
    }
  }
  EXPECT_GT(mixtures, 9'000u);
}

}  // namespace
}  // namespace rdmacoll::shrink_state_test
