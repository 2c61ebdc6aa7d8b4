// Port: the credits that bound it, between two ends where credit lines do not come through.
#include "csrc/engine/port.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>

#include "csrc/memory/shared_segment.h"
#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll {
namespace {

constexpr uint8_t kChannel = kDataChannel;

// Rank 0's and rank 1's ends of one channel. What one signals is in the other's block at once, but
// for credit lines: those are refused.
class Ends {
 public:
  Ends() {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      std::byte* const to = blocks_[1 - rank].data();
      transports_[rank].on_signal = [this, rank, to](RemoteSlice slice, uint64_t counter,
                                                     const Header& header) {
        if (slice.offset == layout_.credit(kChannel, rank)) return Posted::Full;
        Line& line = *reinterpret_cast<Line*>(to + slice.offset);
        line.credit = header.credit;
        line.counter = counter;
        return Posted::Done;
      };
      const Link link{.transport = &transports_[rank], .mapped = to};
      const Region mine{.base = blocks_[rank].data(), .bytes = layout_.total_bytes()};
      ports_[rank].emplace(layout_, link, mine, kChannel, rank, 1 - rank);
    }
  }

  Port& of(uint32_t rank) { return *ports_[rank]; }
  uint32_t depth() const { return layout_.depth(kChannel); }

  // As many as there is room for.
  uint32_t fill(uint32_t rank) {
    uint32_t sent = 0;
    for (; of(rank).can_send(); ++sent) EXPECT_TRUE(of(rank).announce(4));
    return sent;
  }
  void take_and_consume(uint32_t rank, uint32_t messages) {
    for (uint32_t i = 0; i < messages; ++i) {
      ASSERT_NE(of(rank).take(), nullptr);
      of(rank).consume();
    }
  }

 private:
  const Layout layout_{2, kSlotBytesMin, kStageBytesMin};
  SharedSegment blocks_[2] = {SharedSegment::create(layout_.total_bytes()).take(),
                              SharedSegment::create(layout_.total_bytes()).take()};
  FakeTransport transports_[2] = {{"shm", ""}, {"shm", ""}};
  std::optional<Port> ports_[2];
};

TEST(Port, HasRoomForItsDepth) {
  Ends ends;
  EXPECT_EQ(ends.fill(0), ends.depth());
  ends.take_and_consume(1, ends.depth());
  EXPECT_FALSE(ends.of(0).can_send()) << "nothing has told it so far";
}

TEST(Port, AMessageTheOtherWayBringsCreditAlsoBeforeItIsTaken) {
  Ends ends;
  ends.fill(0);
  ends.take_and_consume(1, 3);
  ASSERT_TRUE(ends.of(1).announce(4));
  EXPECT_EQ(ends.fill(0), 3u);
}

TEST(Port, OldCreditDoesNotCountAgain) {
  Ends ends;
  ends.fill(0);
  ends.take_and_consume(1, 1);
  ASSERT_TRUE(ends.of(1).announce(4));
  ends.take_and_consume(1, 2);
  ASSERT_TRUE(ends.of(1).announce(4));
  EXPECT_EQ(ends.fill(0), 3u);
  ends.take_and_consume(0, 2);  // the first says less than what is known
  EXPECT_FALSE(ends.of(0).can_send());
}

}  // namespace
}  // namespace rdmacoll
