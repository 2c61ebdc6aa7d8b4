// The folds for AVX2. No standard header may come after the pragma: its inline functions would be
// compiled for this set and might be the copy that the linker keeps for all. Floor: reduce.
#include "csrc/reduce/fold.h"

#if RDMACOLL_X86_FOLDS

#include <immintrin.h>

#include <cstring>
#include <type_traits>
#include <utility>

#pragma GCC target("avx2,f16c")
#define RDMACOLL_VECTOR_BYTES 32
#include "csrc/reduce/kernels.h"

namespace rdmacoll {

Fold fold_avx2(DType dtype, ReduceOp op) { return fold_of(dtype, op); }

}  // namespace rdmacoll

#endif
