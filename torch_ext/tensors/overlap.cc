// Who shares memory with whom. Floor: torch_ext/tensors.
#include "torch_ext/tensors/overlap.h"

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace rdmacoll::torch_ext {
namespace {

struct Dimension {
  int64_t stride, size;
};
using Dimensions = c10::SmallVector<Dimension, 8>;

// The dimensions of more than one element.
Dimensions dimensions_of(const at::Tensor& tensor) {
  Dimensions dimensions;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) > 1) dimensions.push_back({tensor.stride(d), tensor.size(d)});
  }
  return dimensions;
}

// The place of the last element, counted from the first.
int64_t last_place(const Dimensions& dimensions) {
  int64_t last = 0;
  for (const Dimension& dimension : dimensions) last += dimension.stride * (dimension.size - 1);
  return last;
}

// Whether two elements are in one place, by looking at the place of each.
bool meet(const Dimensions& dimensions) {
  std::vector<bool> taken(static_cast<size_t>(last_place(dimensions)) + 1);
  c10::SmallVector<int64_t, 8> index(dimensions.size());
  int64_t place = 0;
  for (size_t d = 0; d < dimensions.size();) {
    if (taken[static_cast<size_t>(place)]) return true;
    taken[static_cast<size_t>(place)] = true;
    for (d = 0; d < dimensions.size(); ++d) {  // the next, as an odometer counts
      place += dimensions[d].stride;
      if (++index[d] < dimensions[d].size) break;
      place -= dimensions[d].stride * std::exchange(index[d], 0);
    }
  }
  return false;
}

}  // namespace

bool overlaps_itself(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense() || tensor.numel() == 0) return false;
  Dimensions dimensions = dimensions_of(tensor);
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  // If each stride is larger than all that the smaller ones reach together, no two elements meet.
  int64_t reached = 0;
  const bool apart = std::all_of(dimensions.begin(), dimensions.end(), [&](const Dimension& next) {
    const int64_t before = reached;
    reached += next.stride * (next.size - 1);
    return next.stride > before;
  });
  if (apart) return false;
  return tensor.numel() > reached + 1 || meet(dimensions);
}

MutableBuffer extent(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return {};
  const int64_t elements = last_place(dimensions_of(tensor)) + 1;
  return {const_cast<void*>(tensor.const_data_ptr()),
          static_cast<uint64_t>(elements) * tensor.element_size()};
}

bool overlap(ConstBuffer first, ConstBuffer second) {
  const auto* a = static_cast<const char*>(first.data);
  const auto* b = static_cast<const char*>(second.data);
  return first.bytes > 0 && second.bytes > 0 && a < b + second.bytes && b < a + first.bytes;
}

bool overlap_each_other(std::span<const MutableBuffer> buffers) {
  c10::SmallVector<MutableBuffer, 16> sorted;
  std::copy_if(buffers.begin(), buffers.end(), std::back_inserter(sorted),
               [](const MutableBuffer& buffer) { return buffer.bytes > 0; });
  std::sort(sorted.begin(), sorted.end(),
            [](const MutableBuffer& a, const MutableBuffer& b) { return a.data < b.data; });
  return std::adjacent_find(sorted.begin(), sorted.end(), [](auto& a, auto& b) {
           return static_cast<char*>(a.data) + a.bytes > b.data;
         }) != sorted.end();
}

}  // namespace rdmacoll::torch_ext
