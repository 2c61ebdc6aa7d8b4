// Tiling: which bytes a block range has in a tile. Pure arithmetic, equal on both ends of a
// message. Floor: plan. Thread: values.
//
// Two shapes:
//   contiguous  one buffer of `bytes`, cut into windows. A window is a tile and holds all blocks,
//               split evenly in units of `grain` bytes. Neighbouring blocks are contiguous, so a
//               range of several blocks is one piece. all_reduce, reduce, broadcast.
//   scattered   every block has its own size and place; tile i is the i-th chunk of each block.
//               Operands name one block; those of slots, waits and signals may name several, whose
//               bytes add up.
//               all_gather, reduce_scatter, all_to_all, gather, scatter.
// A range that has bytes in a tile has some in every tile before it.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/plan/plan.h"

namespace rdmacoll {

struct Piece {
  uint64_t offset = 0;  // contiguous: in the buffer; scattered: in the block
  uint64_t bytes = 0;
};

class Tiling {
 public:
  // `grain` is a multiple of the element's bytes. `slot_bytes` and `stage_bytes` bound what one
  // message holds: slot_blocks blocks of a tile fit in a slot, stage_blocks in a stage.
  static Tiling contiguous(uint64_t bytes, const Plan& plan, uint64_t slot_bytes,
                           uint64_t stage_bytes, uint64_t grain);
  // `block_bytes` must outlive the tiling.
  static Tiling scattered(const std::vector<uint64_t>& block_bytes, const Plan& plan,
                          uint64_t slot_bytes, uint64_t stage_bytes, uint64_t grain);

  // Tiles in which the range has bytes; a token has one.
  uint64_t tiles(BlockRange range) const;
  // No range has more.
  uint64_t most_tiles() const { return contiguous_ ? full_windows_ + 1 : UINT64_MAX; }
  // The range's bytes in this tile; zero bytes past its end.
  Piece piece(BlockRange range, uint64_t tile) const;
  // Of an operand of a slot: where its blocks, which have `bytes`, lie in their message, and the
  // bytes of that.
  Piece in_message(const Operand& operand, uint64_t bytes, uint64_t tile) const {
    return operand.message.count == 0 ? Piece{0, bytes} : part_of_message(operand, tile);
  }
  // Where a block lies in a stage: behind those that go before it in its group (plan.h).
  uint64_t stage_offset(uint16_t block, uint64_t tile) const {
    const uint64_t first = block < stage_blocks_ ? 0 : block / stage_blocks_ * stage_blocks_;
    return contiguous_ ? block_start(block, tile) - block_start(first, tile)
                       : (block - first) * chunk_bytes_;
  }

 private:
  Tiling() = default;
  Piece part_of_message(const Operand& operand, uint64_t tile) const;
  uint64_t block_start(uint64_t block, uint64_t tile) const;        // contiguous: within its window
  uint64_t block_piece_bytes(uint16_t block, uint64_t tile) const;  // scattered

  bool contiguous_ = true;
  uint64_t chunk_bytes_ = 0;  // the most bytes of one block in one tile, a multiple of grain_
  uint64_t grain_ = 1;
  uint64_t stage_blocks_ = 1;  // of a group
  // contiguous
  uint64_t window_bytes_ = 0;
  uint64_t full_windows_ = 0;
  uint64_t last_bytes_ = 0;   // of the window behind the full ones; 0: there is none
  uint64_t last_grains_ = 0;  // of each of its blocks; the first last_larger_ have one more
  uint64_t last_larger_ = 0;
  // scattered
  const std::vector<uint64_t>* block_bytes_ = nullptr;
};

}  // namespace rdmacoll
