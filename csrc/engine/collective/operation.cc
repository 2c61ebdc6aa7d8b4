// Operation: what ranks compare. Floor: engine/collective.
#include "csrc/engine/collective/operation.h"

#include <numeric>

namespace rdmacoll {

// A plan may pass on blocks that are only others'.
uint64_t Operation::total_bytes() const {
  uint64_t total = bytes;
  for (size_t b = 0; b < block_bytes.size(); ++b) {
    if (inputs[b] != nullptr || outputs[b] != nullptr) total += block_bytes[b];
  }
  return total;
}

uint32_t Operation::message_signature(BlockRange blocks) const {
  if (contiguous || blocks.count == 0) return signature;
  const auto first = block_bytes.begin() + blocks.first;
  const uint64_t message_bytes = std::accumulate(first, first + blocks.count, uint64_t{0});
  return signature ^ static_cast<uint32_t>(message_bytes * 0x9E3779B97F4A7C15ull >> 48 << 16);
}

CollectiveCall Operation::call() const {
  return {.sequence = sequence,
          .bytes = total_bytes(),
          .root = root,
          .equal_blocks = equal_blocks,
          .signature = static_cast<uint16_t>(signature),  // the half that all messages share
          .collective = plan->collective,
          .algorithm = plan->algorithm,
          .dtype = reduction.dtype,
          .op = reduction.op};
}

}  // namespace rdmacoll
