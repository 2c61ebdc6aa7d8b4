// The updates for the instruction set the whole build is for; correct everywhere. On aarch64 that
// is NEON. Floor: reduce.
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#define RDMACOLL_VECTOR_BYTES 16
#include "csrc/reduce/update_kernels.h"

namespace rdmacoll {

Updates updates_portable() { return kUpdates; }

}  // namespace rdmacoll
