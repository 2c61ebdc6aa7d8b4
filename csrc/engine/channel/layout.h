// Layout: where lines, slots and stages lie in a rank's block. A function of the world and the
// configuration alone, so that every rank knows the offsets in everybody's block.
// Floor: engine/channel. Thread: a value.
//
// The block of a rank, for each channel and each writer p:
//   lines   `depth` lines in which p announces its messages to me
//   credit  one line in which p says how many of my messages it has consumed
//   slots   `depth` slots that p writes its messages into; smaller ones for eager messages (p2p.h)
//   bounce  `depth` slots of my own, sources of my puts to a p whose memory is not mapped
// and for each stage channel `depth` stages of my own, for each p one status line (member_status.h)
// and one in which p grants me where its messages are placed (direct_placement.h). Three areas are
// for peers to read: the log of what I have called (call_log.h); at the end what I say when the
// group is shrunk (shrink_state.h), and my heartbeat (heartbeat_monitor.h).
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

// What a rank says when the group is shrunk, and how many of these one reads at a time.
inline constexpr uint64_t kShrinkStateBytes = 4096;
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

class Layout {
 public:
  // Both sizes are multiples of a line.
  Layout(uint32_t world, uint64_t slot_bytes, uint64_t stage_bytes);
  // The largest slots with which those of one channel take no more than block_bytes
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
  uint64_t total_bytes() const { return total_bytes_; }

  uint64_t lines(uint8_t channel, uint32_t writer) const {
    return channels_[channel].lines + writer * (depth(channel) + 1ull) * kLineBytes;
  }
  uint64_t credit(uint8_t channel, uint32_t writer) const {
    return lines(channel, writer) + depth(channel) * kLineBytes;
  }
  uint64_t slots(uint8_t channel, uint32_t writer) const {
    return channels_[channel].slots + writer * depth(channel) * slot_bytes(channel);
  }
  uint64_t bounce(uint8_t channel, uint32_t peer) const {
    return channels_[channel].bounce + peer * depth(channel) * slot_bytes(channel);
  }
  uint64_t stages(uint8_t channel) const { return channels_[channel].stages; }
  uint64_t status(uint32_t writer) const { return writer * uint64_t{kLineBytes}; }
  uint64_t grant(uint32_t writer) const { return grants_ + writer * uint64_t{kLineBytes}; }
  const ReadArea& call_log() const { return call_log_; }
  const ReadArea& shrink_state() const { return shrink_state_; }
  const ReadArea& heartbeat() const { return heartbeat_; }  // a line; a place for each peer

 private:
  struct Channel {
    uint32_t depth = 0;
    uint64_t lines = 0;
    uint64_t slots = 0;
    uint64_t bounce = 0;
    uint64_t stages = 0;
  };
  std::array<Channel, kChannels> channels_;
  uint64_t grants_;
  ReadArea call_log_;
  ReadArea shrink_state_;
  ReadArea heartbeat_;
  uint64_t slot_bytes_;
  uint64_t stage_bytes_;
  uint64_t total_bytes_ = 0;
};

}  // namespace rdmacoll
