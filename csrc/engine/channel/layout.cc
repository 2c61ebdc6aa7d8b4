// Layout: computed once per communicator. Lines first, so that a line's index stays small.
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
  // All ranks load from a stage; a line for each of their blocks is the least that makes sense.
  const uint64_t stage = block_bytes / (4 * kStageDepth) / kPageBytes * kPageBytes;
  const uint64_t least = std::max(kStageBytesMin, whole_pages(world * uint64_t{kLineBytes}));
  return Layout(world, std::clamp(share, kSlotBytesMin, kSlotBytesMax),
                std::clamp(stage, least, kStageBytesMax));
}

Layout::Layout(uint32_t world, uint64_t slot_bytes, uint64_t stage_bytes)
    : grants_(world * uint64_t{kLineBytes}),  // the status lines lie before them
      call_log_{2 * grants_, kCallLogBytes, std::min(world, kMaxCallLogsRead)},
      slot_bytes_(slot_bytes),
      stage_bytes_(stage_bytes) {
  uint64_t next = call_log_.end();
  for (uint8_t channel = 0; channel < kChannels; ++channel) {
    channels_[channel].depth = depth_of(channel);
    channels_[channel].lines = next;
    next += world * (depth(channel) + 1ull) * kLineBytes;
  }
  RDMACOLL_CHECK(next / kLineBytes <= kMaxLinesPerRegion);
  next = whole_pages(next);
  for (uint8_t channel = 0; channel < kChannels; ++channel) {
    if (has_slots(channel)) {
      const uint64_t bytes = world * depth(channel) * this->slot_bytes(channel);
      channels_[channel].slots = next;
      channels_[channel].bounce = next + bytes;
      next += 2 * bytes;
    } else if (is_stage_channel(channel)) {
      channels_[channel].stages = next;
      next += depth(channel) * stage_bytes_;
    }
  }
  shrink_state_ = {next, kShrinkStateBytes, std::min(world, kShrinkStatePlaces)};
  heartbeat_ = {shrink_state_.end(), kLineBytes, world};
  total_bytes_ = heartbeat_.end();
}

}  // namespace rdmacoll
