// Operation: for people. Floor: engine.
#include "csrc/engine/operation.h"

#include <numeric>

namespace rdmacoll {

uint64_t Operation::total_bytes() const {
  return std::accumulate(block_bytes.begin(), block_bytes.end(), bytes);
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
