// The updates for AVX-512. No standard header may come after the pragma: its inline functions would
// be compiled for this set and might be the copy that the linker keeps for all. Floor: reduce.
#include "csrc/reduce/update.h"

#if RDMACOLL_X86_FOLDS

#include <immintrin.h>

#include <cstring>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#define RDMACOLL_VECTOR_BYTES 64
#include "csrc/reduce/update_kernels.h"

namespace rdmacoll {

Updates updates_avx512() { return kUpdates; }

}  // namespace rdmacoll

#endif
