// Updates: the inner loops of optimize(), built once for each instruction set; internal to this
// floor and its tests. Floor: reduce. Thread: any.
#pragma once

#include <cstdint>

#include "csrc/reduce/fold.h"
#include "csrc/reduce/optimize.h"

namespace rdmacoll {

struct Updates {
  void (*range)(const OptimizerStep& step, const Gradients& gradients, const float* value,
                float* next, float* const* state, uint64_t count, Stores stores);
  void (*row)(const OptimizerStep& step, const Gradients& gradients, const float* value,
              float* next, float* sum, uint64_t count);
};

// One per instruction set, all with the same bits.
Updates updates_portable();
#if RDMACOLL_X86_FOLDS
Updates updates_avx2();
Updates updates_avx512();
#endif

}  // namespace rdmacoll
