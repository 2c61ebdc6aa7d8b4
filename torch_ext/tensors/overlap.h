// Overlap: whether memory is shared, by the elements of one tensor or by several buffers.
// Floor: torch_ext/tensors. Thread: any.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "csrc/engine/communicator.h"

namespace rdmacoll::torch_ext {

// Whether two elements of a dense tensor share memory. The answer is exact. Sizes and strides alone
// give it for most tensors, such as slices; for others each element is looked at.
bool overlaps_itself(const at::Tensor& tensor);

// The memory from the first element of a dense tensor to its last, with the gaps between.
MutableBuffer extent(const at::Tensor& tensor);

bool overlap(ConstBuffer first, ConstBuffer second);
// Whether any two of them overlap.
bool overlap_each_other(std::span<const MutableBuffer> buffers);

}  // namespace rdmacoll::torch_ext
