// Mover: bytes that are read from a peer whose memory is not mapped, or written there.
#include "csrc/engine/session/mover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "csrc/engine/session/session_memory.h"
#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll::mover_test {
namespace {

class MoverTest : public testing::Test {
 protected:
  MoverTest() {
    transport_.on_get = [this](PeerId, RemoteSlice from, LocalSlice to, Ticket* ticket) {
      asked_.push_back({from, to});
      *ticket = Ticket(done_, asked_.size());
      return Posted::Pending;
    };
  }
  Mover reading(uint64_t bytes) {
    mine_.assign(bytes, std::byte{0});
    return {Direction::FromPeer, {mine_.data(), bytes, kNoRegion}, {7, nullptr, bytes}, 0};
  }
  // What was asked for first, up to this one, has come.
  void come(uint64_t up_to) {
    for (uint64_t i = done_; i < up_to; ++i) {
      std::fill_n(asked_[i].second.data, asked_[i].second.bytes, std::byte{5});
    }
    done_ = up_to;
  }

  FakeTransport transport_{"fake", "address"};
  std::atomic<uint64_t> done_{0};
  std::vector<std::pair<RemoteSlice, LocalSlice>> asked_;
  std::vector<std::byte> mine_;
  std::vector<std::byte> own_ = std::vector<std::byte>(kSessionBytes + Staging::kBytes);
  Link link_{.transport = &transport_};
  Staging staging_{{own_.data() + kSessionBytes, Staging::kBytes, 3}};
  Landings landings_{{3, own_.data(), kSessionBytes}};
  Way way_{link_, staging_, landings_};
};

TEST_F(MoverTest, GoesThroughStagingInPieces) {
  constexpr uint64_t kBytes = 9 * Staging::kPlaceBytes + 11;
  Mover mover = reading(kBytes);
  EXPECT_TRUE(mover.advance(way_));
  EXPECT_EQ(asked_.size(), Staging::kPlaces);
  EXPECT_FALSE(mover.advance(way_)) << "all of the staging is in use";
  uint64_t come_so_far = 0;
  while (!mover.is_done()) {
    ASSERT_LT(come_so_far, asked_.size());
    come(++come_so_far);
    EXPECT_TRUE(mover.advance(way_));
  }
  EXPECT_EQ(come_so_far, 10u);
  EXPECT_TRUE(std::all_of(mine_.begin(), mine_.end(), [](auto b) { return b == std::byte{5}; }));
  for (const auto& [from, to] : asked_) EXPECT_EQ(to.region, 3u);
}

// Its end makes all tickets done, and nothing has come.
TEST_F(MoverTest, WhatWasAskedOfAPeerThatHasEndedIsNotRead) {
  Mover mover = reading(1000);
  mover.advance(way_);
  transport_.end(0, Status(StatusCode::PeerFailed, "it has ended"));
  done_ = 1;
  EXPECT_FALSE(mover.advance(way_));
  EXPECT_FALSE(mover.is_done());
  EXPECT_TRUE(mover.is_under_way()) << "the device may still write there";
}

// So many small ranges as may be under way go at once, through few places.
TEST_F(MoverTest, SmallRangesShareThePlacesOfTheStaging) {
  constexpr uint64_t kRows = 1000;
  constexpr uint64_t kRowBytes = 40;
  mine_.assign(kRows * kRowBytes, std::byte{0});
  std::vector<MovedRange> rows;
  for (uint64_t row = 0; row < kRows; ++row) {
    rows.push_back({(kRows - 1 - row) * 3 * kRowBytes, row * kRowBytes, kRowBytes});
  }
  Mover mover(Direction::FromPeer, {mine_.data(), mine_.size(), kNoRegion},
              {7, nullptr, 100 + 3 * kRows * kRowBytes}, 100, rows);
  EXPECT_TRUE(mover.advance(way_));
  EXPECT_EQ(asked_.size(), 128u);
  uint64_t rounds = 1;
  for (; !mover.is_done(); ++rounds) {
    ASSERT_LT(rounds, 100u);
    come(asked_.size());
    EXPECT_TRUE(mover.advance(way_));
  }
  ASSERT_EQ(asked_.size(), kRows);
  EXPECT_EQ(rounds, 1 + (kRows + 127) / 128);
  for (uint64_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(asked_[row].first.offset, 100 + rows[row].theirs);
    EXPECT_EQ(asked_[row].first.bytes, kRowBytes);
  }
  EXPECT_TRUE(std::all_of(mine_.begin(), mine_.end(), [](auto b) { return b == std::byte{5}; }));
  for (uint32_t place = 0; place < Staging::kPlaces; ++place) EXPECT_TRUE(staging_.take());
}

// The next round may be another thread's, and come late.
TEST_F(MoverTest, WhatIsAskedForLeavesWithItsRound) {
  std::vector<uint64_t> left;  // at each poll, so many had been asked for
  transport_.on_poll = [&] { left.push_back(asked_.size()); };
  mine_.assign(64, std::byte{0});
  Mover mover(Direction::FromPeer, {mine_.data(), mine_.size(), kNoRegion}, {7, nullptr, 4096}, 0,
              {{4000, 0, 16}, {0, 16, 16}, {17, 32, 32}});
  EXPECT_TRUE(mover.advance(way_));
  EXPECT_EQ(left, std::vector<uint64_t>{3});
  EXPECT_FALSE(mover.advance(way_));
  EXPECT_EQ(left.size(), 1u) << "nothing more was asked for";
}

// What finds the transport full comes again, and has lost neither its place nor its bytes.
TEST_F(MoverTest, ARangeThatFindsTheTransportFullComesAgain) {
  const auto get = transport_.on_get;
  bool is_full = true;
  transport_.on_get = [&](PeerId peer, RemoteSlice from, LocalSlice to, Ticket* ticket) {
    is_full = !is_full;
    return is_full ? Posted::Full : get(peer, from, to, ticket);
  };
  mine_.assign(64, std::byte{0});
  Mover mover(Direction::FromPeer, {mine_.data(), mine_.size(), kNoRegion}, {7, nullptr, 4096}, 0,
              {{4000, 0, 16}, {0, 16, 16}, {17, 32, 32}});
  for (int rounds = 0; !mover.is_done(); ++rounds) {
    ASSERT_LT(rounds, 100);
    mover.advance(way_);
    come(asked_.size());
  }
  ASSERT_EQ(asked_.size(), 3u);
  EXPECT_EQ(asked_[2].first.offset, 17u);
  EXPECT_TRUE(std::all_of(mine_.begin(), mine_.end(), [](auto b) { return b == std::byte{5}; }));
  for (uint32_t place = 0; place < Staging::kPlaces; ++place) EXPECT_TRUE(staging_.take());
}

TEST_F(MoverTest, NothingIsAtOnceDone) {
  Mover mover = reading(0);
  mover.advance(way_);
  EXPECT_TRUE(mover.is_done());
  EXPECT_TRUE(asked_.empty());
}

}  // namespace
}  // namespace rdmacoll::mover_test
