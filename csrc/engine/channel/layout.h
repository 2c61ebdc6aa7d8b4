// Layout: where lines, slots and stages lie in a rank's memory. A function of the world and the
// configuration alone, so that every rank knows the offsets in everybody's memory.
// Floor: engine/channel. Thread: a value.
//
// What one peer writes to a rank goes to a room. A slab holds some of them; the first slab is the
// front of the rank's block, others are regions of their own. A rank gives a room to whom it meets,
// and one to itself. A room has
//   one line for the peer's status (member_status.h), one in which it grants me where its messages
//   are placed (direct_placement.h), and a place for its heartbeat when I read that
// and for each channel
//   lines   `depth` lines in which the peer announces its messages to me
//   credit  one line in which it says how many of my messages it has consumed
//   slots   `depth` slots that it writes its messages into; smaller ones for eager messages (p2p.h)
//   bounce  `depth` slots of my own, sources of my puts to it if its memory is not mapped
// Behind its rooms a block has `depth` stages of my own for each stage channel, and three areas for
// peers to read: the log of what I have called (call_log.h), what I say when the group is shrunk
// (shrink_state.h), and my heartbeat (heartbeat_monitor.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "csrc/base/limits.h"
#include "csrc/plan/plan.h"

namespace rdmacoll {

// Behind the channels of the plans, those of point-to-point (p2p.h).
inline constexpr uint8_t kEnvelopeChannel = kPlanChannels;
inline constexpr uint8_t kClearToSendChannel = kPlanChannels + 1;
inline constexpr uint8_t kDataChannel = kPlanChannels + 2;
inline constexpr uint8_t kEagerChannel = kPlanChannels + 3;
inline constexpr uint8_t kChannels = kPlanChannels + 4;

inline constexpr uint64_t kEagerShare = 8;  // a slot for eager messages is so much smaller

// Entries of a rank's call log: its newest collectives, and one point-to-point operation.
inline constexpr uint32_t kLoggedCollectives = 16;
inline constexpr uint64_t kCallLogBytes = (kLoggedCollectives + 1) * kLineBytes;
inline constexpr uint32_t kMaxCallLogsRead = 64;  // ranks whose logs one reads at a time

// What a rank says when a group of so many is shrunk: a bit for each of them, and so much beside;
// and how many of these one reads at a time.
inline constexpr uint64_t kShrinkWordsBytes = 3584;
constexpr uint64_t shrink_state_bytes(uint32_t world) {
  return kShrinkWordsBytes + (world / 8 / kLineBytes + 1) * kLineBytes;
}
inline constexpr uint32_t kShrinkStatePlaces = 16;

// What all may read in a rank's block, and behind it the places where the rank reads the same of
// others (peer_reads.h).
struct ReadArea {
  uint64_t own = 0;
  uint64_t bytes = 0;
  uint32_t places = 0;

  uint64_t place(uint32_t index) const { return own + (1ull + index) * bytes; }
  uint64_t end() const { return place(places); }
};

// The room of a rank's first slab that it has for itself.
inline constexpr uint32_t kOwnRoom = 0;

// Where a room is in its slab.
struct PeerRoom {
  uint64_t lines = 0;
  uint64_t slots = 0;
};

// The lines and slots of one channel in a room, by their offsets from where the room's lines, or
// slots, begin.
struct ChannelPlace {
  uint32_t depth = 0;
  uint64_t slot_bytes = 0;
  uint64_t lines = 0;
  uint64_t slots = 0;
};

class Layout {
 public:
  // Both sizes are multiples of a line.
  Layout(uint32_t world, uint64_t slot_bytes, uint64_t stage_bytes);
  // The largest slots with which those of one channel for all peers take no more than block_bytes
  // (Config::block_bytes), between the limits.
  static Layout within(uint32_t world, uint64_t block_bytes);
  // Of a smaller group with the same slots and stages: its blocks are no larger than these.
  Layout shrunk(uint32_t world) const { return Layout(world, slot_bytes_, stage_bytes_); }

  uint32_t depth(uint8_t channel) const { return channels_[channel].depth; }
  uint64_t slot_bytes() const { return slot_bytes_; }
  uint64_t slot_bytes(uint8_t channel) const {
    if (channel != kEagerChannel) return slot_bytes_;
    return std::max<uint64_t>(slot_bytes_ / kEagerShare / kLineBytes, 1) * kLineBytes;
  }
  uint64_t stage_bytes() const { return stage_bytes_; }
  ChannelPlace place(uint8_t channel) const {
    return {depth(channel), slot_bytes(channel), channels_[channel].lines,
            channels_[channel].slots};
  }

  // --- slabs ------------------------------------------------------------------------------------
  uint32_t rooms() const { return rooms_; }  // of a slab
  uint64_t slab_bytes() const { return slots_begin_ + rooms_ * room_slot_bytes_; }
  // Below rooms().
  PeerRoom room(uint32_t index) const {
    return {index * room_line_bytes_, slots_begin_ + index * room_slot_bytes_};
  }
  uint64_t status(const PeerRoom& room) const { return room.lines; }
  uint64_t grant(const PeerRoom& room) const { return room.lines + kLineBytes; }
  uint64_t read_heartbeat(const PeerRoom& room) const { return room.lines + 2 * kLineBytes; }
  uint64_t lines(uint8_t channel, const PeerRoom& room) const {
    return room.lines + channels_[channel].lines;
  }
  uint64_t credit(uint8_t channel, const PeerRoom& room) const {
    return lines(channel, room) + depth(channel) * kLineBytes;
  }
  uint64_t slots(uint8_t channel, const PeerRoom& room) const {
    return room.slots + channels_[channel].slots;
  }

  // --- the block, behind its rooms --------------------------------------------------------------
  uint64_t block_bytes() const { return block_bytes_; }
  uint64_t stages(uint8_t channel) const { return channels_[channel].stages; }
  const ReadArea& call_log() const { return call_log_; }
  const ReadArea& shrink_state() const { return shrink_state_; }
  uint64_t heartbeat() const { return heartbeat_; }  // a line

 private:
  struct Channel {
    uint32_t depth = 0;
    uint64_t lines = 0;  // from the room's
    uint64_t slots = 0;  // from the room's
    uint64_t stages = 0;
  };
  std::array<Channel, kChannels> channels_;
  uint32_t rooms_;
  uint64_t slot_bytes_;
  uint64_t stage_bytes_;
  uint64_t room_line_bytes_ = 0;
  uint64_t room_slot_bytes_ = 0;
  uint64_t slots_begin_ = 0;
  ReadArea call_log_;
  ReadArea shrink_state_;
  uint64_t heartbeat_ = 0;
  uint64_t block_bytes_ = 0;
};

}  // namespace rdmacoll
