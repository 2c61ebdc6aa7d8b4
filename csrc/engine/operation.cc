// Operation: what ranks compare, and for people. Floor: engine.
#include "csrc/engine/operation.h"

#include <numeric>

namespace rdmacoll {

uint64_t Operation::total_bytes() const {
  return std::accumulate(block_bytes.begin(), block_bytes.end(), bytes);
}

uint32_t Operation::message_signature(BlockRange blocks) const {
  if (contiguous || blocks.count == 0) return signature;
  const auto first = block_bytes.begin() + blocks.first;
  const uint64_t message_bytes = std::accumulate(first, first + blocks.count, uint64_t{0});
  return signature ^ static_cast<uint32_t>(message_bytes * 0x9E3779B97F4A7C15ull >> 48 << 16);
}

std::string Operation::describe() const {
  std::string text = collective_name(plan->collective);
  text += " #" + std::to_string(sequence) + " (" + std::to_string(total_bytes()) + " bytes";
  const bool folds = plan->collective == Collective::AllReduce ||
                     plan->collective == Collective::Reduce ||
                     plan->collective == Collective::ReduceScatter;
  if (folds) {
    text += std::string(", ") + dtype_name(reduction.dtype) + ", " + reduce_op_name(reduction.op);
  }
  return text + ", " + algorithm_name(plan->algorithm) + ")";
}

}  // namespace rdmacoll
