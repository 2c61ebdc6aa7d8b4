// Rules: how each optimizer moves a vector of values; optimize.h has the formulas. Included by
// update_kernels.h alone, once for each instruction set. Floor: reduce. Thread: any.
#pragma once

#include <cstddef>

#include "csrc/reduce/formats.h"
#include "csrc/reduce/optimize.h"
#include "csrc/reduce/unfused.h"

namespace rdmacoll {
namespace {

RDMACOLL_INLINE Floats root_of(Floats value) {
#if RDMACOLL_VECTOR_BYTES == 64
  constexpr __mmask16 kAll = 0xffff;  // the unmasked form trips a false warning of GCC 12
  return reinterpret_cast<Floats>(_mm512_maskz_sqrt_ps(kAll, reinterpret_cast<__m512>(value)));
#elif RDMACOLL_VECTOR_BYTES == 32
  return reinterpret_cast<Floats>(_mm256_sqrt_ps(reinterpret_cast<__m256>(value)));
#elif defined(__aarch64__)
  return reinterpret_cast<Floats>(vsqrtq_f32(reinterpret_cast<float32x4_t>(value)));
#elif defined(__SSE2__)
  return reinterpret_cast<Floats>(_mm_sqrt_ps(reinterpret_cast<__m128>(value)));
#else
  for (size_t i = 0; i < kVectorBytes / sizeof(float); ++i) value[i] = __builtin_sqrtf(value[i]);
  return value;
#endif
}

struct Sgd {
  static constexpr size_t kStates = 0;
  RDMACOLL_INLINE Floats moved(const OptimizerStep& step, Floats value, Floats gradient, Floats*) {
    return value + step.rate * gradient;
  }
};

struct Momentum {
  static constexpr size_t kStates = 1;
  RDMACOLL_INLINE Floats moved(const OptimizerStep& step, Floats value, Floats gradient,
                               Floats* state) {
    Floats& buffer = state[0];
    buffer = step.is_first ? gradient : buffer * step.momentum + step.intake * gradient;
    return value + step.rate * (step.nesterov ? gradient + step.momentum * buffer : buffer);
  }
};

struct Adagrad {
  static constexpr size_t kStates = 1;
  RDMACOLL_INLINE Floats moved(const OptimizerStep& step, Floats value, Floats gradient,
                               Floats* state) {
    Floats& sum = state[0];
    sum = sum + gradient * gradient;
    return value + step.rate * gradient / (root_of(sum) + step.eps);
  }
};

// Adagrad, once the sum of the row is known.
struct Rowwise {
  static constexpr size_t kStates = 0;
  Floats denominator;
  Floats moved [[gnu::always_inline]] (const OptimizerStep& step, Floats value, Floats gradient,
                                       Floats*) const {
    return value + step.rate * gradient / denominator;
  }
};

struct Adam {
  static constexpr size_t kStates = 2;
  RDMACOLL_INLINE Floats moved(const OptimizerStep& step, Floats value, Floats gradient,
                               Floats* state) {
    Floats &moment = state[0], &square = state[1];
    if (step.shrink != 1) value = value * step.shrink;
    const Floats from = step.is_near_gradient ? gradient : moment;
    moment = from + step.moment_intake * (gradient - moment);
    square = square * step.beta2 + step.intake * gradient * gradient;
    return value + step.rate * moment / (root_of(square) / step.root + step.eps);
  }
};

}  // namespace
}  // namespace rdmacoll
