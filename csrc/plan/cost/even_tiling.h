// Even tiling: which bytes a block range has in an operation whose blocks are all of one size.
// Forecasts, and what shows plans to people, count with it. Floor: plan/cost. Thread: a value,
// immutable once built.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/plan/plan.h"
#include "csrc/plan/tiling.h"

namespace rdmacoll {

// What a message may hold: of the group's layout (engine/channel/layout.h).
struct Room {
  uint64_t slot_bytes = 0;
  uint64_t stage_bytes = 0;
};

class EvenTiling {
 public:
  // bytes: as in Choices::choose(). Of an all_to_all they are one rank's, each way.
  EvenTiling(const Plan& plan, uint64_t bytes, const Room& room);
  // The whole operation is one tile.
  static EvenTiling whole(const Plan& plan, uint64_t bytes);
  EvenTiling(const EvenTiling&) = delete;
  EvenTiling& operator=(const EvenTiling&) = delete;

  // Of the first tile.
  uint64_t bytes_of(BlockRange range) const { return tiling_.piece(range, 0).bytes; }
  // At least one.
  uint64_t tiles() const;

 private:
  std::vector<uint64_t> block_bytes_;
  Tiling tiling_;
};

}  // namespace rdmacoll
