// The inputs and outputs of one rank in one operation: what is in them at first, and what the
// collective promises at the end.
// Floor: plan/verify, behind verify.h only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "csrc/plan/verify/memory.h"
#include "csrc/plan/verify/verify.h"

namespace rdmacoll {

// By buffer: a contiguous collective has one, the others one per block. Null: the rank has none.
struct Buffers {
  std::vector<std::shared_ptr<Cells>> input;
  std::vector<std::shared_ptr<Cells>> output;  // in place: the input's cells
};

Buffers make_buffers(const WorldPlan& world_plan, uint32_t operation, uint16_t rank,
                     Symbols& symbols);

// Empty, or which output of which rank is not what it should be. `ranks`: the buffers by rank.
std::string wrong_result(const WorldPlan& world_plan, uint32_t operation,
                         const std::vector<Buffers>& ranks, Symbols& symbols);

}  // namespace rdmacoll
