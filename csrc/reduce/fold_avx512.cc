// The folds for AVX-512. No standard header may come after the pragma: its inline functions would
// be compiled for this set and might be the copy that the linker keeps for all. Floor: reduce.
#include "csrc/reduce/fold.h"

#if RDMACOLL_X86_FOLDS

#include <immintrin.h>

#include <cstring>
#include <type_traits>
#include <utility>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#define RDMACOLL_VECTOR_BYTES 64
#include "csrc/reduce/kernels.h"

namespace rdmacoll {

Fold fold_avx512(DType dtype, ReduceOp op) { return fold_of(dtype, op); }

}  // namespace rdmacoll

#endif
