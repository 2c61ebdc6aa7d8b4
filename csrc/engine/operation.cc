// Operation: for people. Floor: engine.
#include "csrc/engine/operation.h"

#include <numeric>

namespace rdmacoll {

std::string Operation::describe() const {
  const uint64_t total = std::accumulate(block_bytes.begin(), block_bytes.end(), bytes);
  std::string text = collective_name(plan->collective);
  text += " #" + std::to_string(sequence) + " (" + std::to_string(total) + " bytes";
  const bool folds = plan->collective == Collective::AllReduce ||
                     plan->collective == Collective::Reduce ||
                     plan->collective == Collective::ReduceScatter;
  if (folds) {
    text += std::string(", ") + dtype_name(reduction.dtype) + ", " + reduce_op_name(reduction.op);
  }
  return text + ", " + algorithm_name(plan->algorithm) + ")";
}

}  // namespace rdmacoll
