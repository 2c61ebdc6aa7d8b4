// The ends of rank 0 and rank 1 of one channel, mapped. What one signals is in the other's block at
// once, inline data apart; credit lines only if wished. Floor: tests.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "csrc/engine/channel/port.h"
#include "csrc/memory/shared_segment.h"
#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll {

class Ends {
 public:
  enum class CreditLines : uint8_t { Arrive, AreRefused };

  explicit Ends(uint8_t channel, CreditLines credit_lines) : channel_(channel) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      std::byte* const to = blocks_[1 - rank].data();
      transports_[rank].on_signal = [this, rank, to, credit_lines](
                                        RemoteSlice slice, uint64_t counter, const Header& header) {
        const bool is_credit = slice.offset == layout_.credit(channel_, room_);
        if (is_credit && credit_lines == CreditLines::AreRefused) return Posted::Full;
        Line& line = *reinterpret_cast<Line*>(to + slice.offset);
        line.length_and_sequence = header.length_and_sequence;
        line.credit = header.credit;
        line.counter = counter;
        return Posted::Done;
      };
      const Region mine{.base = blocks_[rank].data(), .bytes = layout_.block_bytes()};
      const Region theirs{.base = to, .bytes = layout_.block_bytes()};
      const Link link{.transport = &transports_[rank],
                      .block = theirs,
                      .slab = theirs,
                      .room = room_,
                      .own_slab = mine,
                      .own_room = room_};
      ports_[rank].emplace(layout_.place(channel_), link, channel_);
    }
  }

  Port& of(uint32_t rank) { return *ports_[rank]; }
  uint32_t depth() const { return layout_.depth(channel_); }

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
  const uint8_t channel_;
  const Layout layout_{2, kSlotBytesMin, kStageBytesMin};
  const PeerRoom room_ = layout_.room(1);  // of either, at the other
  SharedSegment blocks_[2] = {SharedSegment::create(layout_.block_bytes()).take(),
                              SharedSegment::create(layout_.block_bytes()).take()};
  FakeTransport transports_[2] = {{"shm", ""}, {"shm", ""}};
  std::optional<Port> ports_[2];
};

}  // namespace rdmacoll
