// The instruction sets whose folds and updates are built, and whether this processor has them.
#pragma once

#include <vector>

#include "csrc/reduce/fold.h"
#include "csrc/reduce/update.h"

namespace rdmacoll::reference {

struct InstructionSet {
  const char* name;
  Fold (*fold_of)(DType, ReduceOp);
  Updates (*updates)();
  bool is_here;
};

inline std::vector<InstructionSet> instruction_sets() {
  return {
      {"portable", fold_portable, updates_portable, true},
#if RDMACOLL_X86_FOLDS
      {"AVX2", fold_avx2, updates_avx2, processor_has_avx2()},
      {"AVX-512", fold_avx512, updates_avx512, processor_has_avx512()},
#endif
  };
}

}  // namespace rdmacoll::reference
