// Even tiling. Floor: plan/cost.
#include "csrc/plan/cost/even_tiling.h"

#include <algorithm>

namespace rdmacoll {

EvenTiling::EvenTiling(const Plan& plan, uint64_t bytes, const Room& room)
    : block_bytes_(plan.blocks, bytes / plan.world),
      tiling_(is_contiguous(plan.collective)
                  ? Tiling::contiguous(bytes, plan, room.slot_bytes, room.stage_bytes, 1)
                  : Tiling::scattered(block_bytes_, plan, room.slot_bytes, room.stage_bytes, 1)) {}

EvenTiling EvenTiling::whole(const Plan& plan, uint64_t bytes) {
  const uint64_t everything = std::max<uint64_t>(bytes, 1) * std::max<uint64_t>(plan.blocks, 1);
  return EvenTiling(plan, bytes, {everything, everything});
}

uint64_t EvenTiling::tiles() const { return std::max<uint64_t>(tiling_.tiles({0, 1}), 1); }

}  // namespace rdmacoll
