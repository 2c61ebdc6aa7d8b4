// ShrinkState: what is read is what was said, or nothing; never a mixture.
#include "csrc/engine/failure/shrink_state.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace rdmacoll {
namespace {

struct Area {
  alignas(kLineBytes) std::byte bytes[kShrinkStateBytes] = {};
};

RankSet some_of(uint32_t world, std::mt19937_64& random) {
  RankSet set(world);
  for (uint32_t r = 0; r < world; ++r) set[r] = random() % 3 == 0;
  return set;
}

TEST(ShrinkState, IsReadAsItWasSaid) {
  std::mt19937_64 random(1);
  for (const uint32_t world : {1u, 2u, 63u, 64u, 65u, 4096u}) {
    for (const auto& record : {std::string(), std::string("short"), std::string(3000, 'x')}) {
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

TEST(ShrinkState, OneThatIsTooLongIsRefused) {
  Area area;
  const ShrinkState said{0, ShrinkStage::Ready, RankSet(4), std::string(kShrinkStateBytes, 'x')};
  const Status status = said.publish(area.bytes);
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << status.message();
  EXPECT_FALSE(ShrinkState::read(area.bytes, 0, 4));
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
}  // namespace rdmacoll
