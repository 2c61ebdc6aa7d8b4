// Parts: how plans of two levels share out a buffer. It is cut into parts; on each island every
// part has an owner, and owners of the same part exchange it across the network: a rail.
//
// Groups. A part may have a block for each island. A stage that held those of all parts and of
// hundreds of islands would leave each a few bytes, so a stage message holds the blocks of a group
// of islands, of all parts; blocks are numbered group by group, in a group part by part.
// Floor: plan/layered. Thread: a local value of the function that makes the plan.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/base/limits.h"
#include "csrc/plan/builder.h"
#include "csrc/plan/islands.h"

namespace rdmacoll {

// With so many blocks in the largest stage each has room for what the smallest slot holds.
inline constexpr uint32_t kStageBlocks = kStageBytesMax / kSlotBytesMin;

class Parts {
 public:
  // As many parts as the largest island has ranks, each of so many blocks; fewer, where these would
  // be more blocks than the world has ranks (layout.h). A group has up to stage_blocks, or one of
  // each part.
  Parts(const Islands& islands, uint32_t blocks_each, uint32_t stage_blocks = kStageBlocks);

  uint32_t count() const { return count_; }
  uint32_t blocks() const { return count_ * blocks_each_; }
  BlockRange block(uint32_t part, uint32_t index) const;

  // Of the blocks of each part, by index. All but the last have as many.
  uint32_t groups() const { return (blocks_each_ + group_each_ - 1) / group_each_; }
  uint32_t group_of(uint32_t index) const { return index / group_each_; }
  uint32_t group_blocks() const { return group_each_ * count_; }
  BlockRange group(uint32_t group) const;
  // All groups in the order in which an island deals with them: its own first. But where a rank
  // owns several parts, all islands go by the same order: its slots hold few of their messages, and
  // two islands that begin with different groups could each wait for the other's next.
  std::vector<uint32_t> groups_of(uint32_t island) const;
  // The islands of a group, where each has a block of a part, but this one. Each of the islands of
  // a group begins another group with another island, so that none is sent to by all.
  std::vector<uint16_t> others_in(uint32_t group, uint32_t island) const;

  uint16_t owner(uint32_t part, uint32_t island) const;
  // Those of a rank are in a row, so that their blocks in a group are one range. Some rank may own
  // none.
  struct Range {
    uint32_t begin;
    uint32_t end;
  };
  Range of(uint32_t rank) const;
  BlockRange blocks_of(uint32_t rank, uint32_t group = 0) const;

 private:
  uint32_t in_group(uint32_t group) const;  // how many of each part

  const Islands& islands_;
  uint32_t blocks_each_;
  uint32_t count_;
  uint32_t group_each_;
};

// What the others of a rank's island fold goes into its stage, as one message for each group: for
// each of them its parts. Whoever owns none takes the messages all the same.
void publish_inputs(PlanBuilder& plan, const Parts& parts, uint32_t island);

// The islands but this one, the next first: everybody starts with another.
std::vector<uint16_t> islands_from(uint32_t island, const Islands& islands);
// The one before this one first: in this order messages come that are sent in the other one.
std::vector<uint16_t> islands_before(uint32_t island, const Islands& islands);

// So many blocks, with a cache line for each, fit in the smallest slot.
inline constexpr uint32_t kSlotBlocksMax = kSlotBytesMin / kLineBytes;

// Who on an island speaks to another one: each of its ranks to as many as the next, or one more.
uint16_t leader(uint32_t island, uint32_t to, const Islands& islands);

// The islands that a rank speaks to, the next first.
std::vector<uint16_t> led(uint16_t rank, const Islands& islands);

// Where blocks are numbered island by island: those of an island's ranks, and that of a rank.
BlockRange blocks_of(uint32_t island, const Islands& islands);
BlockRange block_of(uint32_t rank, const Islands& islands);

// What a rank's island gives to one block of a fold, in the order of ranks: its own input, and the
// stages of the others, which are held. `first_of_source`: the first block of what the others'
// stage messages to this rank name as their source.
Operands island_inputs(uint16_t rank, const Islands& islands, BlockRange block, uint8_t channel,
                       uint16_t first_of_source);

}  // namespace rdmacoll
