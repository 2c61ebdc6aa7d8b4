// The rules of split sizes, in torch's words. Floor: torch_ext/tensors.
#include "torch_ext/tensors/splits.h"

#include <c10/util/StringUtil.h>

#include <numeric>

namespace rdmacoll::torch_ext {

std::vector<int64_t> rows_per_rank(const Check& check, const char* argument,
                                   const at::Tensor& tensor, const std::vector<int64_t>& splits,
                                   int size) {
  if (tensor.dim() == 0) {
    check.fail(c10::str(argument, " is a scalar; it needs a dimension 0 to split"));
  }
  const int64_t rows = tensor.size(0);
  if (splits.empty()) {
    if (rows % size != 0) {
      check.fail(c10::str("Tensor's dim 0 does not divide equally across group size: ", argument,
                          " has ", rows, " rows for ", size, " ranks; give split sizes"));
    }
    return std::vector<int64_t>(static_cast<size_t>(size), rows / size);
  }
  if (splits.size() != static_cast<size_t>(size)) {
    check.fail(c10::str("Number of tensor splits not equal to group size: ", splits.size(), " ",
                        argument, " splits for ", size, " ranks"));
  }
  for (const int64_t split : splits) {
    if (split < 0) check.fail(c10::str(argument, " split of ", split, " rows; give 0 or more"));
  }
  const int64_t total = std::accumulate(splits.begin(), splits.end(), int64_t{0});
  if (total != rows) {
    check.fail(c10::str("Split sizes doesn't match total dim 0 size: the ", argument,
                        " splits are ", total, " rows, the tensor has ", rows));
  }
  return splits;
}

}  // namespace rdmacoll::torch_ext
