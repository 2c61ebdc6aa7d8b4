// Parts: how plans of two levels share out a buffer. It is cut into parts; on each island every
// part has an owner, and owners of the same part exchange it across the network: a rail.
// Floor: plan/layered. Thread: a local value of the function that makes the plan.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/plan/builder.h"
#include "csrc/plan/islands.h"

namespace rdmacoll {

class Parts {
 public:
  // As many parts as the largest island has ranks, each of so many blocks; fewer, where these would
  // be more blocks than a stage of this world holds (layout.h).
  Parts(const Islands& islands, uint32_t blocks_each);

  uint32_t count() const { return count_; }
  uint32_t blocks() const { return count_ * blocks_each_; }
  uint16_t owner(uint32_t part, uint32_t island) const;
  // Those of a rank are in a row, so that their blocks are one range. Some rank may own none.
  struct Range {
    uint32_t begin;
    uint32_t end;
  };
  Range of(uint32_t rank) const;
  BlockRange blocks_of(uint32_t rank) const;

 private:
  const Islands& islands_;
  uint32_t blocks_each_;
  uint32_t count_;
};

// What the others of a rank's island fold goes into its stage, as one message that holds all
// blocks: for each of them its parts. Whoever owns none takes the message all the same.
void publish_inputs(PlanBuilder& plan, const Parts& parts);

// The islands but this one, the next first: everybody starts with another.
std::vector<uint16_t> islands_from(uint32_t island, const Islands& islands);

// Who on an island speaks to another one: each of its ranks to as many as the next, or one more.
uint16_t leader(uint32_t island, uint32_t to, const Islands& islands);

// What a rank's island gives to one block of a fold, in the order of ranks: its own input, and the
// stages of the others, which are held. `first_of_source`: the first block of what the others'
// stage messages to this rank name as their source.
Operands island_inputs(uint16_t rank, const Islands& islands, BlockRange block, uint8_t channel,
                       uint16_t first_of_source);

}  // namespace rdmacoll
