// Operation: a collective bound to memory: which plan, cut how, over whose bytes.
// Floor: engine/collective. Thread: made by the thread that starts it, then the driver's.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/engine/work/call.h"
#include "csrc/plan/plan.h"
#include "csrc/plan/tiling.h"
#include "csrc/reduce/reduce.h"

namespace rdmacoll {

struct Operation {
  const Plan* plan = nullptr;
  Reduction reduction{DType::UInt8, ReduceOp::Sum, 1};
  uint16_t root = 0;
  uint64_t grain = 1;       // blocks are cut at multiples of it
  uint64_t sequence = 0;    // of the communicator's collectives
  uint64_t also_equal = 0;  // what the caller wants to be equal on every rank, beside the call
  uint32_t signature = 0;   // of all that must be

  // Contiguous collectives: one buffer in, one out.
  bool contiguous = true;
  uint64_t bytes = 0;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  // Scattered ones: a place and a size for each block; nullptr where this rank has no such block.
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::vector<uint64_t> block_bytes;
  bool equal_blocks = false;  // those of all ranks are of one size

  // Of all blocks that this rank has.
  uint64_t total_bytes() const;
  // Of a message that holds these blocks. The size of a scattered block is known to its two ends
  // only, so it is part of this and not of the operation's, whose lower half stays as it is.
  uint32_t message_signature(BlockRange blocks) const;
  CollectiveCall call() const;  // all fields except started_ns
};

}  // namespace rdmacoll
