// The updates for AVX2. No standard header may come after the pragma: its inline functions would be
// compiled for this set and might be the copy that the linker keeps for all. Floor: reduce.
#include "csrc/reduce/update.h"

#if RDMACOLL_X86_FOLDS

#include <immintrin.h>

#include <cstring>

#pragma GCC target("avx2,f16c")
#define RDMACOLL_VECTOR_BYTES 32
#include "csrc/reduce/update_kernels.h"

namespace rdmacoll {

Updates updates_avx2() { return kUpdates; }

}  // namespace rdmacoll

#endif
