// The fold of every dtype and op, for the instruction set of the file that includes it (formats.h).
// All sources of an element meet in registers, so a destination may be any of the sources, and what
// is folded in a wider type is rounded once. Floor: reduce. Thread: any.
#pragma once

#include <cstring>
#include <type_traits>

#include "csrc/reduce/fold.h"
#include "csrc/reduce/formats.h"
#include "csrc/reduce/ops.h"

namespace rdmacoll {
namespace {

template <typename Op, typename V>
RDMACOLL_INLINE V applied(V left, V right) {
  return Op::apply(left, right);
}

template <typename Op>
RDMACOLL_INLINE Pair applied(Pair left, Pair right) {
  return {Op::apply(left.even, right.even), Op::apply(left.odd, right.odd)};
}

template <typename Op, typename V>
RDMACOLL_INLINE V divided(V sum, uint32_t divisor) {
  return Op::divide(sum, divisor);
}

template <typename Op>
RDMACOLL_INLINE Pair divided(Pair sum, uint32_t divisor) {
  return {Op::divide(sum.even, divisor), Op::divide(sum.odd, divisor)};
}

// Folds `vectors` of Format::Memory at `offset`. What a vector of fewer `bytes` lacks is zero.
template <typename Format, typename Op, size_t vectors>
RDMACOLL_INLINE void fold_step(const void* const* sources, size_t source_count, uint64_t offset,
                               char* to, size_t bytes, uint32_t divisor) {
  using Memory = typename Format::Memory;
  using Folded = typename Format::Folded;
  const auto load = [&](size_t source, size_t i) __attribute__((always_inline)) {
    Memory memory = {};
    const char* const from = static_cast<const char*>(sources[source]) + offset;
    std::memcpy(&memory, from + i * sizeof(Memory), bytes);
    return Format::widen(memory);
  };
  Folded folded[vectors];
#pragma GCC unroll 4
  for (size_t i = 0; i < vectors; ++i) folded[i] = load(0, i);
  for (size_t source = 1; source < source_count; ++source)
#pragma GCC unroll 4
    for (size_t i = 0; i < vectors; ++i) folded[i] = applied<Op>(folded[i], load(source, i));
#pragma GCC unroll 4
  for (size_t i = 0; i < vectors; ++i) {
    if constexpr (Op::kDivides) folded[i] = divided<Op>(folded[i], divisor);
    const Memory memory = Format::narrow(folded[i]);
    std::memcpy(to + i * sizeof(Memory), &memory, bytes);
  }
}

template <typename Format, typename Op>
void fold(const void* const* sources, size_t source_count, void* destination, uint64_t begin,
          uint64_t end, uint32_t divisor) {
  constexpr size_t kBytes = sizeof(typename Format::Memory);
  constexpr size_t kUnroll = 4;  // vectors in flight: one's latency hides in the others'
  char* to = static_cast<char*>(destination);
  for (; end - begin >= kUnroll * kBytes; begin += kUnroll * kBytes, to += kUnroll * kBytes)
    fold_step<Format, Op, kUnroll>(sources, source_count, begin, to, kBytes, divisor);
  for (; end - begin >= kBytes; begin += kBytes, to += kBytes)
    fold_step<Format, Op, 1>(sources, source_count, begin, to, kBytes, divisor);
  if (begin < end) fold_step<Format, Op, 1>(sources, source_count, begin, to, end - begin, divisor);
}

template <typename Format>
Fold fold_of_real(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return fold<Format, Sum>;
    case ReduceOp::Avg:
      return fold<Format, Avg>;
    case ReduceOp::Product:
      return fold<Format, Product>;
    case ReduceOp::Min:
      return fold<Format, Min>;
    case ReduceOp::Max:
      return fold<Format, Max>;
    default:
      return nullptr;
  }
}

// Parts are summed one by one, so a complex number is two reals to every op but the product.
template <typename T>
Fold fold_of_complex(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Avg:
      return fold_of_real<Plain<T>>(op);
    case ReduceOp::Product:
      return fold<Plain<T>, ComplexProduct>;
    default:
      return nullptr;
  }
}

// Sums and products wrap, which is the same bits signed or not, and defined for the latter only.
template <typename T>
Fold fold_of_integer(ReduceOp op) {
  using Unsigned = std::make_unsigned_t<T>;
  switch (op) {
    case ReduceOp::Sum:
      return fold<Plain<Unsigned>, Sum>;
    case ReduceOp::Avg:
      return fold<Plain<Unsigned>, IntegerAvg<T>>;
    case ReduceOp::Product:
      return fold<Plain<Unsigned>, Product>;
    case ReduceOp::Min:
      return fold<Plain<T>, Min>;
    case ReduceOp::Max:
      return fold<Plain<T>, Max>;
    case ReduceOp::BitAnd:
      return fold<Plain<uint8_t>, BitAnd>;
    case ReduceOp::BitOr:
      return fold<Plain<uint8_t>, BitOr>;
    case ReduceOp::BitXor:
      return fold<Plain<uint8_t>, BitXor>;
    default:
      return nullptr;
  }
}

inline Fold fold_of_bool(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Max:
    case ReduceOp::BitOr:
      return fold<Boolean, BitOr>;
    case ReduceOp::Product:
    case ReduceOp::Min:
    case ReduceOp::BitAnd:
      return fold<Boolean, BitAnd>;
    case ReduceOp::BitXor:
      return fold<Boolean, BitXor>;
    default:
      return nullptr;
  }
}

inline Fold fold_of(DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::Float64:
      return fold_of_real<Plain<double>>(op);
    case DType::Float32:
      return fold_of_real<Plain<float>>(op);
    case DType::Float16:
      return fold_of_real<Half>(op);
    case DType::BFloat16:
      return fold_of_real<Brain>(op);
    case DType::Int64:
      return fold_of_integer<int64_t>(op);
    case DType::Int32:
      return fold_of_integer<int32_t>(op);
    case DType::Int16:
      return fold_of_integer<int16_t>(op);
    case DType::Int8:
      return fold_of_integer<int8_t>(op);
    case DType::UInt64:
      return fold_of_integer<uint64_t>(op);
    case DType::UInt32:
      return fold_of_integer<uint32_t>(op);
    case DType::UInt16:
      return fold_of_integer<uint16_t>(op);
    case DType::UInt8:
      return fold_of_integer<uint8_t>(op);
    case DType::Bool:
      return fold_of_bool(op);
    case DType::Complex64:
      return fold_of_complex<float>(op);
    case DType::Complex128:
      return fold_of_complex<double>(op);
  }
  return nullptr;
}

}  // namespace
}  // namespace rdmacoll
