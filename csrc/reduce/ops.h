// Ops: how two vectors become one. Included by kernels.h alone, once for each instruction set.
// Floor: reduce. Thread: any.
#pragma once

#include <type_traits>

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
    using Part = std::decay_t<decltype(left[0])>;
    V product = {};
    for (size_t r = 0, i = 1; i < sizeof(V) / sizeof(Part); r += 2, i += 2) {
      // volatile, so that each is rounded by itself: compilers fuse a product with the addition
      // behind it where the processor can, and the bits would depend on the machine.
      const volatile Part rr = left[r] * right[r], ii = left[i] * right[i];
      const volatile Part ri = left[r] * right[i], ir = left[i] * right[r];
      product[r] = rr - ii;
      product[i] = ri + ir;
    }
    return product;
  }
};

}  // namespace
}  // namespace rdmacoll
