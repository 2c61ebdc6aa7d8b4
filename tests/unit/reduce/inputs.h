// Inputs for the tests of reduce(), and the comparison of what comes out. Seeded, so a failure
// repeats.
#pragma once

#include "tests/unit/reduce/reference.h"

namespace rdmacoll::reference {

// Integers, small enough that five of them multiply exactly in every dtype.
inline void put_integer(DType dtype, int value, unsigned char* at) {
  switch (dtype) {
    case DType::Float64:
    case DType::Complex128:
      return store<double>(value, at);
    case DType::Float32:
    case DType::Complex64:
      return store<float>(static_cast<float>(value), at);
    case DType::Float16:
      return store(kFloat16.store(static_cast<float>(value)), at);
    case DType::BFloat16:
      return store(kBFloat16.store(static_cast<float>(value)), at);
    default:
      // Little-endian two's complement, cut to the element.
      const int64_t wide = value;
      std::memcpy(at, &wide, std::min(dtype_bytes(dtype), sizeof(wide)));
  }
}

inline size_t part_bytes(DType dtype) {
  const bool is_complex = dtype == DType::Complex64 || dtype == DType::Complex128;
  return dtype_bytes(dtype) / (is_complex ? 2 : 1);
}

inline Bytes small_integers(DType dtype, size_t elements, std::mt19937& random) {
  Bytes bytes(elements * dtype_bytes(dtype));
  for (size_t at = 0; at < bytes.size(); at += part_bytes(dtype))
    put_integer(dtype, static_cast<int>(random() % 7) - 3, &bytes[at]);
  return bytes;
}

// Every pattern there is: NaN, infinities, subnormals, overflowing integers, Bool bytes beyond 1.
inline Bytes random_bits(DType dtype, size_t elements, std::mt19937& random) {
  Bytes bytes(elements * dtype_bytes(dtype));
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random() >> 24);
  return bytes;
}

inline bool part_is_nan(DType dtype, const unsigned char* at) {
  switch (dtype) {
    case DType::Float64:
    case DType::Complex128:
      return std::isnan(load<double>(at));
    case DType::Float32:
    case DType::Complex64:
      return std::isnan(load<float>(at));
    case DType::Float16:
      return std::isnan(kFloat16.load(load<uint16_t>(at)));
    case DType::BFloat16:
      return std::isnan(kBFloat16.load(load<uint16_t>(at)));
    default:
      return false;
  }
}

// The first element at which the two differ, or -1. All NaN are the same: which of two operands'
// payloads survives a sum is the processor's choice.
inline int64_t first_difference(DType dtype, const unsigned char* got, const Bytes& want) {
  if (want.empty() || std::memcmp(got, want.data(), want.size()) == 0) return -1;
  const size_t part = part_bytes(dtype);
  for (size_t at = 0; at < want.size(); at += part) {
    if (std::memcmp(got + at, &want[at], part) == 0) continue;
    if (part_is_nan(dtype, got + at) && part_is_nan(dtype, &want[at])) continue;
    return static_cast<int64_t>(at / dtype_bytes(dtype));
  }
  return -1;
}

}  // namespace rdmacoll::reference
