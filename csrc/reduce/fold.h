// Fold: the inner loop of reduce(), built once for each instruction set; internal to this floor and
// its tests. Floor: reduce. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/reduce/types.h"

// The x86 sets are chosen with GCC's target pragma; elsewhere the portable one is the only one.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define RDMACOLL_X86_FOLDS 1
#else
#define RDMACOLL_X86_FOLDS 0
#endif

namespace rdmacoll {

// Bytes [begin, end) of the sources folded into so many bytes at the destination.
using Fold = void (*)(const void* const* sources, size_t source_count, void* destination,
                      uint64_t begin, uint64_t end, uint32_t divisor);

// One per instruction set, all with the same bits; nullptr where the pair means nothing.
Fold fold_portable(DType dtype, ReduceOp op);
#if RDMACOLL_X86_FOLDS
Fold fold_avx2(DType dtype, ReduceOp op);
Fold fold_avx512(DType dtype, ReduceOp op);

// Whether this processor has what the files of each set are compiled for.
inline bool processor_has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
}
inline bool processor_has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

}  // namespace rdmacoll
