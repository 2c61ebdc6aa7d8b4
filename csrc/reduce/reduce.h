// reduce(): k sources folded into m destinations, at memory speed. Pure: no state, no I/O.
// Floor: reduce. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/reduce/types.h"

namespace rdmacoll {

struct Reduction {
  DType dtype;
  ReduceOp op;
  // Avg only: divide the folded sum by this; 1 for a partial sum. Ignored by the other ops.
  uint32_t divisor = 1;
};

inline constexpr size_t kStreamedMax = 32;  // destinations, see below

// destination[j][i] = op(source[0][i], source[1][i], ..., source[k-1][i]) for every j, folded from
// left to right: the bits depend on the order of the sources, never on sizes or alignment.
// BFloat16 and Float16 fold in float and round once, to nearest even. A NaN in any source is a NaN
// in the result, of Min and Max too; which payload it has is not promised. Integers wrap; the Avg
// of integers is their wrapped sum, divided and truncated toward zero. A Bool is true unless 0, and
// its result is 0 or 1. `bytes` is a multiple of the element's size. Each destination may be one of
// the sources (exactly the same pointer) and overlaps nothing else. Pointers need no alignment
// (slots hold raw bytes). Bit j of `streamed`: destination j is written past the caches
// (memory/copy.h), which is for the first kStreamedMax only.
void reduce(const Reduction& reduction, const void* const* sources, size_t source_count,
            void* const* destinations, size_t destination_count, uint64_t bytes,
            uint32_t streamed = 0);

}  // namespace rdmacoll
