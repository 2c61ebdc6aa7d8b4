// PeerReads: what is taken is what that peer had, once; nothing arrives in a place behind its back.
#include "csrc/engine/failure/peer_reads.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/engine/read_peers.h"

namespace rdmacoll::peer_reads_test {
namespace {

using Answer = ReadPeers::Answer;

// Three peers that have nothing but their rank's number in the area.
struct PeerReadsTest : testing::Test {
  PeerReadsTest() {
    for (uint32_t rank = 1; rank < 4; ++rank) {
      std::fill_n(peers.block(rank) + area.own, area.bytes, static_cast<std::byte>(rank));
    }
  }
  bool holds_only(const std::byte* bytes, int value) const {
    return std::all_of(bytes, bytes + area.bytes,
                       [&](std::byte one) { return one == static_cast<std::byte>(value); });
  }

  ReadPeers peers{4};
  const ReadArea& area = peers.layout.call_log();
  PeerReads reads{area, *peers.links};
};

TEST_F(PeerReadsTest, WhatWasReadIsTakenOnce) {
  ASSERT_TRUE(reads.post(2, 1));
  const std::byte* read = reads.take(2);
  ASSERT_NE(read, nullptr);
  EXPECT_TRUE(holds_only(read, 1));
  EXPECT_EQ(reads.peer(2), 1u);
  EXPECT_EQ(reads.take(2), nullptr) << "twice";
  EXPECT_EQ(reads.take(3), nullptr) << "where nothing was read";
}

TEST_F(PeerReadsTest, EveryPlaceIsItsOwn) {
  const std::byte* read[4] = {};
  for (uint32_t peer = 1; peer < 4; ++peer) {
    ASSERT_TRUE(reads.post(peer, peer));
    read[peer] = reads.take(peer);
  }
  for (int peer = 1; peer < 4; ++peer) EXPECT_TRUE(holds_only(read[peer], peer)) << peer;
  EXPECT_TRUE(holds_only(peers.block(0) + area.own, 0)) << "what this rank says";
  EXPECT_TRUE(holds_only(peers.block(0) + area.end(), 0)) << "what is behind the places";
}

TEST_F(PeerReadsTest, NothingIsTakenBeforeItHasCome) {
  peers.answers[1] = Answer::Later;
  ASSERT_TRUE(reads.post(0, 1));
  EXPECT_EQ(reads.take(0), nullptr);
  EXPECT_FALSE(reads.post(0, 2)) << "its place is awaited";
  peers.deliver();
  EXPECT_FALSE(reads.post(0, 2)) << "it has come, and is not taken";
  const std::byte* read = reads.take(0);
  ASSERT_NE(read, nullptr);
  EXPECT_TRUE(holds_only(read, 1));
  EXPECT_EQ(peers.gets, 1u);
}

TEST_F(PeerReadsTest, WhatIsRefusedIsNotAwaited) {
  peers.answers[1] = Answer::Refuses;
  EXPECT_FALSE(reads.post(0, 1));
  EXPECT_EQ(reads.take(0), nullptr);
  ASSERT_TRUE(reads.post(0, 2)) << "the place is free";
  EXPECT_TRUE(holds_only(reads.take(0), 2));
}

TEST_F(PeerReadsTest, WhoIsGoneDoesNotSayWhatAnotherSaid) {
  ASSERT_TRUE(reads.post(0, 1));
  ASSERT_NE(reads.take(0), nullptr);
  peers.answers[2] = Answer::IsGone;
  ASSERT_TRUE(reads.post(0, 2));
  const std::byte* read = reads.take(0);
  ASSERT_NE(read, nullptr);
  EXPECT_TRUE(holds_only(read, 0));
}

TEST_F(PeerReadsTest, WhatIsForgottenIsNotTaken) {
  ASSERT_TRUE(reads.post(0, 1));
  reads.forget();
  EXPECT_EQ(reads.take(0), nullptr);
  ASSERT_TRUE(reads.post(0, 2));
  EXPECT_TRUE(holds_only(reads.take(0), 2));
}

TEST_F(PeerReadsTest, AForgottenReadKeepsItsPlaceUntilNothingCanArriveThere) {
  peers.answers[1] = Answer::Later;
  ASSERT_TRUE(reads.post(0, 1));
  reads.forget();
  EXPECT_FALSE(reads.post(0, 2)) << "the older read would arrive in it";
  EXPECT_TRUE(reads.post(1, 2)) << "another place";
  reads.forget();
  peers.deliver();
  EXPECT_EQ(reads.take(0), nullptr);
  ASSERT_TRUE(reads.post(0, 2));
  EXPECT_TRUE(holds_only(reads.take(0), 2));
}

}  // namespace
}  // namespace rdmacoll::peer_reads_test
