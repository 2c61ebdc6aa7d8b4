// Ops: how two vectors become one. Included by kernels.h alone, once for each instruction set.
// Floor: reduce. Thread: any.
#pragma once

#include <cstddef>
#include <utility>

#include "csrc/reduce/formats.h"

namespace rdmacoll {
namespace {

struct Sum {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return left + right;
  }
};

struct Avg : Sum {};  // and a division at the end

struct Product {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return left * right;
  }
};

// A NaN on either side wins, whatever the order: all ranks agree that there was one.
struct Min {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return (left < right) | (left != left) ? left : right;
  }
};

struct Max {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return (left > right) | (left != left) ? left : right;
  }
};

struct BitAnd {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return left & right;
  }
};

struct BitOr {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return left | right;
  }
};

struct BitXor {
  template <typename V>
  RDMACOLL_INLINE V apply(V left, V right) {
    return left ^ right;
  }
};

// The schoolbook product of (real, imaginary) pairs.
struct ComplexProduct {
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
