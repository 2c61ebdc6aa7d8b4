// Overlap: whether memory is shared, by the elements of one tensor or by several buffers.
// Floor: torch_ext. Thread: any.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "csrc/engine/communicator.h"

namespace rdmacoll::torch_ext {

// Whether two elements of a dense tensor lie in one place, by all its strides: exact, in one look
// for what torch knows to be without gaps and for slices of that, else in a pass over its elements.
bool overlaps_itself(const at::Tensor& tensor);

// All from the first element of a dense tensor to its last, with what lies between.
MutableBuffer extent(const at::Tensor& tensor);

bool overlap(ConstBuffer first, ConstBuffer second);
// Whether any two of them do.
bool overlap_each_other(std::span<const MutableBuffer> buffers);

}  // namespace rdmacoll::torch_ext
