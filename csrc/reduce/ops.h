// Ops: how two vectors become one. Included by kernels.h alone, once for each instruction set.
// Floor: reduce. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "csrc/reduce/formats.h"

namespace rdmacoll {
namespace {

struct Undivided {
  static constexpr bool kDivides = false;
};

struct Sum : Undivided {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return left + right;
  }
};

struct Avg : Sum {
  static constexpr bool kDivides = true;
  template <typename V>
  RDMACOLL_INLINE V divide(V sum, uint32_t divisor) {
    return sum / static_cast<std::decay_t<decltype(sum[0])>>(divisor);
  }
};

// The average of integers of type T. Their sums are folded unsigned, as they wrap. Elements are
// divided one by one, as processors have no division of integer vectors, and as an int at least, as
// a smaller type may not hold the divisor.
template <typename T>
struct IntegerAvg : Avg {
  template <typename V>
  RDMACOLL_INLINE V divide(V sum, uint32_t divisor) {
    for (size_t i = 0; i < sizeof(V) / sizeof(T); ++i) {
      const auto dividend = +static_cast<T>(sum[i]);
      sum[i] =
          static_cast<std::make_unsigned_t<T>>(dividend / static_cast<decltype(+T{})>(divisor));
    }
    return sum;
  }
};

struct Product : Undivided {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return left * right;
  }
};

// A NaN on either side wins, whatever the order: all ranks agree that there was one.
struct Min : Undivided {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return (left < right) | (left != left) ? left : right;
  }
};

struct Max : Undivided {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return (left > right) | (left != left) ? left : right;
  }
};

struct BitAnd : Undivided {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return left & right;
  }
};

struct BitOr : Undivided {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return left | right;
  }
};

struct BitXor : Undivided {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return left ^ right;
  }
};

// The schoolbook product of (real, imaginary) pairs.
struct ComplexProduct : Undivided {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return apply(left, right, std::make_index_sequence<sizeof(V) / sizeof(left[0])>());
  }
  template <typename V, size_t... i>
  RDMACOLL_INLINE V apply(V left, V right, std::index_sequence<i...>) {
    const V same = left * right;                  // rr, ii
    const V crossed = left * V{right[i ^ 1]...};  // ri, ir
    // Rearranged before they are added: compilers fuse a product with an addition right behind it
    // where the processor can, and the bits would depend on the machine.
    const V first = {(i % 2 ? crossed[i & ~1] : same[i])...};  // rr, ri
    const V second = {(i % 2 ? crossed[i] : same[i | 1])...};  // ii, ir
    const V minus = first - second, plus = first + second;
    return V{(i % 2 ? plus[i] : minus[i])...};
  }
};

}  // namespace
}  // namespace rdmacoll
