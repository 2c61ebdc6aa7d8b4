// ShrinkStateReader: what all say is found, through fewer places than ranks; by the deadline what
// there is.
#include "csrc/engine/failure/shrink_state_reader.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/read_peers.h"

namespace rdmacoll::shrink_state_reader_test {
namespace {

using Answer = ReadPeers::Answer;
constexpr uint32_t kWorld = 3 * kShrinkStatePlaces;

struct ShrinkStateReaderTest : testing::Test {
  ShrinkStateReaderTest() {
    for (uint32_t rank = 1; rank < kWorld; ++rank) say(rank, ShrinkStage::Ready);
  }
  void say(uint32_t rank, ShrinkStage stage) {
    const ShrinkState state{.rank = rank, .stage = stage, .excluded = RankSet(kWorld)};
    ASSERT_TRUE(state.publish(peers.block(rank) + peers.layout.shrink_state().own).ok());
  }
  void begin() {
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 1; rank < kWorld; ++rank) ranks.push_back(rank);
    found.assign(kWorld, std::nullopt);
    finished.clear();
    reader.begin({std::make_shared<Work>(), std::move(ranks), &found, clock.now_ns() + 1000});
  }
  // Until nothing moves. Whether the reading has ended.
  bool advance() {
    while (reader.advance(finished)) {
    }
    return !finished.empty();
  }

  ManualClock clock;
  ReadPeers peers{kWorld};
  ShrinkStateReader reader{clock, *peers.links};
  std::vector<std::optional<ShrinkState>> found;
  std::vector<Completion> finished;
};

TEST_F(ShrinkStateReaderTest, AllAreRead) {
  begin();
  ASSERT_TRUE(advance());
  EXPECT_EQ(peers.gets, kWorld - 1);
  for (uint32_t rank = 1; rank < kWorld; ++rank) EXPECT_TRUE(found[rank]) << rank;
}

TEST_F(ShrinkStateReaderTest, OneThatIsLateIsWaitedForUntilTheDeadline) {
  peers.answers[5] = Answer::Later;
  begin();
  EXPECT_FALSE(advance());
  clock.at_ns += 1000;
  ASSERT_TRUE(advance());
  EXPECT_TRUE(finished[0].status.ok());
  for (uint32_t rank = 1; rank < kWorld; ++rank) EXPECT_EQ(found[rank].has_value(), rank != 5);
}

// The answer to an older reading says nothing in the next one.
TEST_F(ShrinkStateReaderTest, WhatComesAfterTheDeadlineIsNotTaken) {
  for (uint32_t rank = 1; rank < kWorld; ++rank) peers.answers[rank] = Answer::Later;
  begin();
  clock.at_ns += 1000;
  ASSERT_TRUE(advance());
  for (uint32_t rank = 1; rank < kWorld; ++rank) peers.answers[rank] = Answer::AtOnce;
  begin();
  EXPECT_FALSE(advance()) << "all places are in use";
  peers.deliver();
  for (uint32_t rank = 1; rank < kWorld; ++rank) say(rank, ShrinkStage::Made);
  ASSERT_TRUE(advance());
  for (uint32_t rank = 1; rank < kWorld; ++rank) {
    ASSERT_TRUE(found[rank]) << rank;
    EXPECT_EQ(found[rank]->stage, ShrinkStage::Made) << rank;
  }
}

}  // namespace
}  // namespace rdmacoll::shrink_state_reader_test
