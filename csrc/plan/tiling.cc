// Tiling: the arithmetic. Divisions happen once per operation, none per step, but where a stage
// holds a group of a tile's blocks.
#include "csrc/plan/tiling.h"

#include <algorithm>

#include "csrc/base/check.h"

namespace rdmacoll {
namespace {

// The largest multiple of grain of which a slot holds slot_blocks and a stage stage_blocks.
uint64_t chunk_bytes_of(const Plan& plan, uint64_t slot_bytes, uint64_t stage_bytes,
                        uint64_t grain) {
  uint64_t bound = plan.stage_blocks != 0 ? stage_bytes / plan.stage_blocks : slot_bytes;
  if (plan.slot_blocks != 0) bound = std::min(bound, slot_bytes / plan.slot_blocks);
  const uint64_t chunk_bytes = bound / grain * grain;
  RDMACOLL_CHECK(chunk_bytes != 0);
  return chunk_bytes;
}

}  // namespace

Tiling Tiling::contiguous(uint64_t bytes, const Plan& plan, uint64_t slot_bytes,
                          uint64_t stage_bytes, uint64_t grain) {
  Tiling tiling;
  tiling.grain_ = grain;
  tiling.chunk_bytes_ = chunk_bytes_of(plan, slot_bytes, stage_bytes, grain);
  tiling.stage_blocks_ = std::max<uint64_t>(plan.stage_blocks, 1);
  tiling.window_bytes_ = plan.blocks * tiling.chunk_bytes_;
  tiling.full_windows_ = bytes / tiling.window_bytes_;
  tiling.last_bytes_ = bytes - tiling.full_windows_ * tiling.window_bytes_;
  const uint64_t grains = (tiling.last_bytes_ + grain - 1) / grain;
  tiling.last_grains_ = grains / plan.blocks;
  tiling.last_larger_ = grains % plan.blocks;
  return tiling;
}

Tiling Tiling::scattered(const std::vector<uint64_t>& block_bytes, const Plan& plan,
                         uint64_t slot_bytes, uint64_t stage_bytes, uint64_t grain) {
  RDMACOLL_CHECK(block_bytes.size() == plan.blocks);
  Tiling tiling;
  tiling.contiguous_ = false;
  tiling.grain_ = grain;
  tiling.chunk_bytes_ = chunk_bytes_of(plan, slot_bytes, stage_bytes, grain);
  tiling.stage_blocks_ = std::max<uint64_t>(plan.stage_blocks, 1);
  tiling.block_bytes_ = &block_bytes;
  return tiling;
}

uint64_t Tiling::tiles(BlockRange range) const {
  if (range.count == 0) return 1;
  if (contiguous_) return full_windows_ + (piece(range, full_windows_).bytes != 0);
  const auto first = block_bytes_->begin() + range.first;
  return (*std::max_element(first, first + range.count) + chunk_bytes_ - 1) / chunk_bytes_;
}

Piece Tiling::piece(BlockRange range, uint64_t tile) const {
  if (contiguous_) {
    if (tile > full_windows_) return {};
    const uint64_t start = block_start(range.first, tile);
    return {tile * window_bytes_ + start, block_start(range.first + range.count, tile) - start};
  }
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < range.count; ++i) bytes += block_piece_bytes(range.first + i, tile);
  return {tile * chunk_bytes_, bytes};
}

Piece Tiling::part_of_message(const Operand& operand, uint64_t tile) const {
  const BlockRange message = operand.message;
  const auto ahead = static_cast<uint16_t>(operand.blocks.first - message.first);
  return {piece({message.first, ahead}, tile).bytes, piece(message, tile).bytes};
}

uint64_t Tiling::block_start(uint64_t block, uint64_t tile) const {
  if (tile < full_windows_) return block * chunk_bytes_;
  const uint64_t grains = block * last_grains_ + std::min(block, last_larger_);
  return std::min(grains * grain_, last_bytes_);  // the last grain may be ragged
}

uint64_t Tiling::block_piece_bytes(uint16_t block, uint64_t tile) const {
  const uint64_t bytes = (*block_bytes_)[block];
  const uint64_t start = tile * chunk_bytes_;
  return start < bytes ? std::min(bytes - start, chunk_bytes_) : 0;
}

}  // namespace rdmacoll
