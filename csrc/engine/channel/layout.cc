// Layout: computed once per communicator. The lines of all rooms come first in a slab, so that a
// line's index stays small.
// Floor: engine/channel.
#include "csrc/engine/channel/layout.h"

#include <algorithm>

#include "csrc/base/check.h"

namespace rdmacoll {
namespace {

constexpr uint64_t kPageBytes = 4096;

bool has_slots(uint8_t channel) {
  return channel < kSlotChannels || channel == kDataChannel || channel == kEagerChannel;
}

uint32_t depth_of(uint8_t channel) {
  if (is_stage_channel(channel)) return kStageDepth;
  return has_slots(channel) ? kSlotDepth : kEnvelopeDepth;
}

uint64_t whole_pages(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

}  // namespace

Layout Layout::within(uint32_t world, uint64_t block_bytes) {
  const uint64_t peers = std::max(world - 1, 1u);
  const uint64_t share = block_bytes / (peers * kSlotDepth) / kPageBytes * kPageBytes;
  // An island's ranks load from a stage. A line for the block of each is the least that plans need
  // there; those of many islands share out what there is (plan/layered/parts.h).
  const uint64_t stage = block_bytes / (4 * kStageDepth) / kPageBytes * kPageBytes;
  const uint64_t least =
      std::max(kStageBytesMin, whole_pages(std::min(world, kMaxIsland) * kLineBytes));
  return Layout(world, std::clamp(share, kSlotBytesMin, kSlotBytesMax),
                std::clamp(stage, least, kStageBytesMax));
}

Layout::Layout(uint32_t world, uint64_t slot_bytes, uint64_t stage_bytes)
    : rooms_(std::min(world, kRoomsPerSlab)), slot_bytes_(slot_bytes), stage_bytes_(stage_bytes) {
  room_line_bytes_ = 3 * kLineBytes;  // status, grant, heartbeat
  for (uint8_t channel = 0; channel < kChannels; ++channel) {
    Channel& one = channels_[channel];
    one.depth = depth_of(channel);
    one.lines = room_line_bytes_;
    room_line_bytes_ += (one.depth + 1ull) * kLineBytes;
    if (!has_slots(channel)) continue;
    one.slots = room_slot_bytes_;
    room_slot_bytes_ += 2 * one.depth * this->slot_bytes(channel);  // and the bounce slots
  }
  RDMACOLL_CHECK(rooms_ * room_line_bytes_ / kLineBytes <= kMaxLinesPerRegion);
  slots_begin_ = whole_pages(rooms_ * room_line_bytes_);
  uint64_t next = slab_bytes();
  for (uint8_t channel = 0; channel < kChannels; ++channel) {
    if (!is_stage_channel(channel)) continue;
    channels_[channel].stages = next;
    next += depth(channel) * stage_bytes_;
  }
  call_log_ = {next, kCallLogBytes, std::min(world, kMaxCallLogsRead)};
  shrink_state_ = {call_log_.end(), shrink_state_bytes(world), std::min(world, kShrinkStatePlaces)};
  heartbeat_ = shrink_state_.end();
  block_bytes_ = heartbeat_ + kLineBytes;
}

}  // namespace rdmacoll
