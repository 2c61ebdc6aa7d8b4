// reduce(): picks the fold for this processor and walks the bytes block by block. Floor: reduce.
#include "csrc/reduce/reduce.h"

#include <algorithm>

#include "csrc/base/check.h"
#include "csrc/memory/copy.h"
#include "csrc/reduce/fold.h"

namespace rdmacoll {
namespace {

// What is folded is copied to the further destinations while it is in the first-level cache.
constexpr uint64_t kBlockBytes = 16 * 1024;

Fold fold_for_this_processor(DType dtype, ReduceOp op) {
#if RDMACOLL_X86_FOLDS
  if (processor_has_avx512()) return fold_avx512(dtype, op);
  if (processor_has_avx2()) return fold_avx2(dtype, op);
#endif
  return fold_portable(dtype, op);
}

}  // namespace

bool reduction_supported(DType dtype, ReduceOp op) { return fold_portable(dtype, op) != nullptr; }

void reduce(const Reduction& reduction, const void* const* sources, size_t source_count,
            void* const* destinations, size_t destination_count, uint64_t bytes,
            uint32_t streamed) {
  const auto [dtype, op, divisor] = reduction;
  RDMACOLL_CHECK(reduction_supported(dtype, op));
  RDMACOLL_CHECK(op != ReduceOp::Avg || divisor > 0);
  RDMACOLL_CHECK(source_count > 0 && destination_count > 0);
  RDMACOLL_CHECK(bytes % dtype_bytes(dtype) == 0);
  const bool is_partial_sum = op == ReduceOp::Avg && divisor == 1;  // a division costs
  const Fold fold = fold_for_this_processor(dtype, is_partial_sum ? ReduceOp::Sum : op);

  alignas(64) std::byte scratch[kBlockBytes];
  for (uint64_t begin = 0; begin < bytes; begin += kBlockBytes) {
    const uint64_t end = std::min(begin + kBlockBytes, bytes);
    std::byte* const first = static_cast<std::byte*>(destinations[0]) + begin;
    std::byte* const folded = (streamed & 1) != 0 ? scratch : first;
    fold(sources, source_count, folded, begin, end, divisor);
    for (size_t d = folded == first ? 1 : 0; d < destination_count; ++d) {
      std::byte* const to = static_cast<std::byte*>(destinations[d]) + begin;
      const bool past_caches = d < kStreamedMax && (streamed >> d & 1) != 0;
      copy_bytes(to, folded, end - begin, past_caches ? Stores::Streamed : Stores::Cached);
    }
  }
}

}  // namespace rdmacoll
