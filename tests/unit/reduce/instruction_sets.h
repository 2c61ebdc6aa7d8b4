// The instruction sets whose folds are built, and whether this processor has them.
#pragma once

#include <vector>

#include "csrc/reduce/fold.h"

namespace rdmacoll::reference {

struct InstructionSet {
  const char* name;
  Fold (*fold_of)(DType, ReduceOp);
  bool is_here;
};

inline std::vector<InstructionSet> instruction_sets() {
  return {
      {"portable", fold_portable, true},
#if RDMACOLL_X86_FOLDS
      {"AVX2", fold_avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")},
      {"AVX-512", fold_avx512,
       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl")},
#endif
  };
}

}  // namespace rdmacoll::reference
