// Mover: bytes that are read from a peer whose memory is not mapped, or written there.
#include "csrc/engine/session/mover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "csrc/engine/session/session_memory.h"
#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll {
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

TEST_F(MoverTest, NothingIsAtOnceDone) {
  Mover mover = reading(0);
  mover.advance(way_);
  EXPECT_TRUE(mover.is_done());
  EXPECT_TRUE(asked_.empty());
}

}  // namespace
}  // namespace rdmacoll
