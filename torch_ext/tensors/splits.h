// The split sizes of all_to_all_single: rows of dimension 0 per rank, as buffers.
// Floor: torch_ext/tensors. Thread: any.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {

// The rows of every rank: `splits`, or equal shares if there are none. Fails, naming `argument`.
std::vector<int64_t> rows_per_rank(const Check& check, const char* argument,
                                   const at::Tensor& tensor, const std::vector<int64_t>& splits,
                                   int size);

// `buffer`, the whole memory of the tensor, cut by these rows.
template <typename Buffer>
std::vector<Buffer> cut_rows(const at::Tensor& tensor, Buffer buffer,
                             const std::vector<int64_t>& rows) {
  const uint64_t row_bytes =
      tensor.numel() == 0 ? 0 : buffer.bytes / static_cast<uint64_t>(tensor.size(0));
  std::vector<Buffer> cuts;
  auto* at = static_cast<const char*>(buffer.data);
  for (const int64_t count : rows) {
    const uint64_t bytes = static_cast<uint64_t>(count) * row_bytes;
    cuts.push_back({const_cast<char*>(at), bytes});
    at += bytes;
  }
  return cuts;
}

}  // namespace rdmacoll::torch_ext
