// reference_fold(): what reduce() must give, one element at a time in plain scalar C++; and the
// inputs it is given. Shares nothing with the code under test but the names of dtypes and ops.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "csrc/reduce/types.h"

namespace rdmacoll::reference {

using Bytes = std::vector<unsigned char>;

inline const std::vector<DType> kDTypes = {
#define X(name, bytes) DType::name,
    RDMACOLL_DTYPES(X)
#undef X
};

inline const std::vector<ReduceOp> kOps = {
#define X(name) ReduceOp::name,
    RDMACOLL_REDUCE_OPS(X)
#undef X
};

// The 16-bit formats by their definition: a mantissa, an exponent, a sign.
struct SmallFloat {
  int mantissa_bits, exponent_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  float load(uint16_t bits) const {
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const float sign = bits >> 15 ? -1.0f : 1.0f;
    if (exponent == (1 << exponent_bits) - 1)
      return mantissa ? std::numeric_limits<float>::quiet_NaN() : sign * INFINITY;
    const int leading = exponent ? 1 << mantissa_bits : 0;
    return sign * static_cast<float>(std::ldexp(leading + mantissa,
                                                std::max(exponent, 1) - bias() - mantissa_bits));
  }
  uint16_t store(float value) const {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const int all_ones = ((1 << exponent_bits) - 1) << mantissa_bits;
    if (std::isnan(value)) return sign | all_ones | 1 << (mantissa_bits - 1);
    if (std::isinf(value)) return sign | all_ones;
    if (value == 0) return sign;
    const double magnitude = std::abs(static_cast<double>(value));
    const int exponent = std::max(std::ilogb(magnitude), 1 - bias());
    // In units of the last place; nearbyint() rounds halves to even. The carry of a mantissa that
    // rounds up to the next power of two runs into the exponent, and from the largest to infinity.
    const int units =
        static_cast<int>(std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent)));
    const int encoded = ((exponent + bias() - 1) << mantissa_bits) + units;
    return sign | std::min(encoded, all_ones);
  }
};

inline constexpr SmallFloat kFloat16{10, 5};
inline constexpr SmallFloat kBFloat16{7, 8};

template <typename T>
T load(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
void store(T value, unsigned char* at) {
  std::memcpy(at, &value, sizeof(T));
}

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

template <typename T>
T apply_real(ReduceOp op, T left, T right) {
  switch (op) {
    case ReduceOp::Product:
      return left * right;
    case ReduceOp::Min:
      return is_nan(left) || (!is_nan(right) && left < right) ? left : right;
    case ReduceOp::Max:
      return is_nan(left) || (!is_nan(right) && left > right) ? left : right;
    default:
      return left + right;
  }
}

// T is int64_t or uint64_t whatever the width: the low bits of a sum or product are the same.
template <typename T>
T apply_integer(ReduceOp op, T left, T right) {
  const auto a = static_cast<uint64_t>(left), b = static_cast<uint64_t>(right);
  switch (op) {
    case ReduceOp::Min:
    case ReduceOp::Max:
      return apply_real(op, left, right);
    case ReduceOp::BitAnd:
      return static_cast<T>(a & b);
    case ReduceOp::BitOr:
      return static_cast<T>(a | b);
    case ReduceOp::BitXor:
      return static_cast<T>(a ^ b);
    default:
      return static_cast<T>(apply_real(op, a, b));
  }
}

inline bool apply_bool(ReduceOp op, bool left, bool right) {
  switch (op) {
    case ReduceOp::Product:
    case ReduceOp::Min:
    case ReduceOp::BitAnd:
      return left && right;
    case ReduceOp::BitXor:
      return left != right;
    default:
      return left || right;
  }
}

template <typename T>
std::complex<T> apply_complex(ReduceOp op, std::complex<T> left, std::complex<T> right) {
  if (op != ReduceOp::Product) return {left.real() + right.real(), left.imag() + right.imag()};
  // volatile: no product may be fused with the addition behind it.
  const volatile T rr = left.real() * right.real(), ii = left.imag() * right.imag();
  const volatile T ri = left.real() * right.imag(), ir = left.imag() * right.real();
  return {rr - ii, ri + ir};
}

// Folds with `apply` what `get(pointer)` reads, and lets `put(value, pointer)` write it.
template <typename Get, typename Apply, typename Put>
Bytes fold_elements(const std::vector<Bytes>& sources, size_t element_bytes, Get get, Apply apply,
                    Put put) {
  Bytes folded(sources[0].size());
  for (size_t at = 0; at < folded.size(); at += element_bytes) {
    auto value = get(&sources[0][at]);
    for (size_t s = 1; s < sources.size(); ++s) value = apply(value, get(&sources[s][at]));
    put(value, &folded[at]);
  }
  return folded;
}

template <typename T>
Bytes fold_integers(const std::vector<Bytes>& sources, ReduceOp op, uint32_t divisor) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  return fold_elements(
      sources, sizeof(T), [](auto* at) { return static_cast<Wide>(load<T>(at)); },
      [op](Wide left, Wide right) { return apply_integer(op, left, right); },
      [=](Wide value, auto* at) {
        const Wide wrapped = static_cast<T>(value);
        store(static_cast<T>(op == ReduceOp::Avg ? wrapped / Wide{divisor} : wrapped), at);
      });
}

template <typename T>
Bytes fold_reals(const std::vector<Bytes>& sources, ReduceOp op, uint32_t divisor) {
  return fold_elements(
      sources, sizeof(T), [](auto* at) { return load<T>(at); },
      [op](T left, T right) { return apply_real(op, left, right); },
      [=](T value, auto* at) {
        store(op == ReduceOp::Avg ? value / static_cast<T>(divisor) : value, at);
      });
}

inline Bytes fold_small(const std::vector<Bytes>& sources, ReduceOp op, uint32_t divisor,
                        SmallFloat format) {
  return fold_elements(
      sources, 2, [=](auto* at) { return format.load(load<uint16_t>(at)); },
      [op](float left, float right) { return apply_real(op, left, right); },
      [=](float value, auto* at) {
        const float folded = op == ReduceOp::Avg ? value / static_cast<float>(divisor) : value;
        store(format.store(folded), at);
      });
}

template <typename T>
Bytes fold_complex(const std::vector<Bytes>& sources, ReduceOp op, uint32_t divisor) {
  using C = std::complex<T>;
  return fold_elements(
      sources, sizeof(C), [](auto* at) { return load<C>(at); },
      [op](C left, C right) { return apply_complex(op, left, right); },
      [=](C value, auto* at) {
        const T by = op == ReduceOp::Avg ? static_cast<T>(divisor) : T{1};
        store(C{value.real() / by, value.imag() / by}, at);
      });
}

inline Bytes reference_fold(const std::vector<Bytes>& sources, DType dtype, ReduceOp op,
                            uint32_t divisor) {
  switch (dtype) {
    case DType::Float64:
      return fold_reals<double>(sources, op, divisor);
    case DType::Float32:
      return fold_reals<float>(sources, op, divisor);
    case DType::Float16:
      return fold_small(sources, op, divisor, kFloat16);
    case DType::BFloat16:
      return fold_small(sources, op, divisor, kBFloat16);
    case DType::Int64:
      return fold_integers<int64_t>(sources, op, divisor);
    case DType::Int32:
      return fold_integers<int32_t>(sources, op, divisor);
    case DType::Int16:
      return fold_integers<int16_t>(sources, op, divisor);
    case DType::Int8:
      return fold_integers<int8_t>(sources, op, divisor);
    case DType::UInt64:
      return fold_integers<uint64_t>(sources, op, divisor);
    case DType::UInt32:
      return fold_integers<uint32_t>(sources, op, divisor);
    case DType::UInt16:
      return fold_integers<uint16_t>(sources, op, divisor);
    case DType::UInt8:
      return fold_integers<uint8_t>(sources, op, divisor);
    case DType::Bool:
      return fold_elements(
          sources, 1, [](auto* at) { return *at != 0; },
          [op](bool left, bool right) { return apply_bool(op, left, right); },
          [](bool value, auto* at) { *at = value; });
    case DType::Complex64:
      return fold_complex<float>(sources, op, divisor);
    case DType::Complex128:
      return fold_complex<double>(sources, op, divisor);
  }
  return {};
}

}  // namespace rdmacoll::reference
