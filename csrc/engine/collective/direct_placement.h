// DirectPlacement: messages that are written where they belong in the receiver's output (plan.h,
// "Direct placement"; RFC 5040 calls it so): the grants that this rank gives and those that it has.
// Only between ranks that do not map each other's memory: to those, zero copy saves the same copy.
// Floor: engine/collective. Thread: the driver.
//
// At the start of an operation the receiver writes one line, the grant, to each peer that has
// enough bytes for it: where in its heap they belong, or that they do not lie there. A sender waits
// for that line a little, for it is under way if the receiver has started, and else begins with the
// slots. It may turn to placement at any message, since each says which it is. So nothing waits for
// a receiver that comes late, and ranks need not agree about anything.
//
// What a peer may write after a failure is the group's affair (group_life.cc).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/engine/channel/heap.h"
#include "csrc/engine/channel/peer_links.h"
#include "csrc/engine/collective/operation.h"

namespace rdmacoll {

class DirectPlacement {
 public:
  // least_bytes: from or to a peer, of what fewer are, nothing is placed.
  DirectPlacement(const PeerLinks& links, const Heap* heap, const Clock& clock,
                  uint64_t least_bytes);

  // The operation, of so many bytes on this rank, must outlive its run. All its peers are met.
  void begin(const Operation& operation, uint64_t bytes);
  // Sends what found the transport full.
  void send_grants();

  // --- as the sender --------------------------------------------------------------------------
  // Whether it is too early to say where a message to the peer goes.
  bool is_undecided(uint32_t peer);
  // Where the peer wants this message; nullopt: in its slot.
  std::optional<RemoteSlice> place(uint32_t peer, BlockRange blocks, const Piece& piece) const;

  // --- as the receiver ------------------------------------------------------------------------
  // Whether the peer may write into this operation's output.
  bool is_granted_to(uint32_t peer) const;

 private:
  // In the inline data of a grant's line, whose counter is the operation's number. Block b lies at
  // offset + (b - block) * stride.
  struct Grant {
    uint64_t offset = 0;
    int64_t stride_bytes = 0;
    uint32_t block = 0;
    std::array<char, kShortKeyBytes> key{};  // of the region; zeros: use the slots

    bool leads_somewhere() const { return key != decltype(key){}; }
  };
  static_assert(sizeof(Grant) <= kInlineBytes);

  // What is placed between this rank and a peer one way, in the operation of this number.
  struct Direction {
    uint64_t sequence = 0;
    uint64_t bytes = 0;
    uint32_t signature = 0;  // of all its messages: grants and sends must mean the same
  };
  struct Given : Direction {
    uint32_t peer = 0;
    bool sent = false;
    Grant grant;
    const std::byte* block_at = nullptr;  // of grant.block
    const std::byte* begin = nullptr;     // of all blocks
    const std::byte* end = nullptr;
    bool is_even = true;  // the blocks lie at even distances
  };
  enum class Answer : uint8_t { None, Slots, Granted };
  struct Expected : Direction {
    Answer answer = Answer::None;
    Region region;  // of the grant
    Grant grant;
  };

  bool is_placed(const Step& step) const;
  bool is_due(const Direction& direction) const;
  void count(const Step& step, Direction& direction) const;
  uint64_t bytes_of(BlockRange blocks) const;
  void expect(const Step& step);
  void give(const Step& step);
  void add_block(Given& given, uint16_t block, uint64_t bytes);
  void fill_in(Given& given, const Transport& transport) const;
  void read_answer(const Link& link, Expected& expected);
  const Link& link(uint32_t peer) const { return links_.at(peer)->link; }
  template <typename Directions>
  static auto of(const MetPeer* peer, Directions& directions) {
    return peer != nullptr && peer->index < directions.size() ? &directions[peer->index] : nullptr;
  }

  const PeerLinks& links_;
  const Heap* const heap_;
  const Clock& clock_;
  const uint64_t least_bytes_;

  const Operation* operation_ = nullptr;
  std::vector<Given> given_;        // by MetPeer::index
  std::vector<Expected> expected_;  // the same
  uint32_t unsent_ = 0;
  int64_t wait_until_ns_ = 0;
};

}  // namespace rdmacoll
