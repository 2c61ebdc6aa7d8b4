// The update of every optimizer, for the instruction set of the file that includes it (formats.h).
// Gradients are folded in registers, so that they cost no pass of their own. Floor: reduce.
// Thread: any.
#pragma once

#include <cstring>

#include "csrc/reduce/rules.h"
#include "csrc/reduce/unfused.h"
#include "csrc/reduce/update.h"

namespace rdmacoll {
namespace {

// Where the vectors of a call come from and go to.
struct Arrays {
  const Gradients& gradients;
  const float* value;
  float* next;
  float* const* state;
};

// `bytes` of a vector; what it lacks is zero.
RDMACOLL_INLINE Floats load(const void* from, uint64_t offset, size_t bytes) {
  Floats vector = {};
  std::memcpy(&vector, static_cast<const char*>(from) + offset, bytes);
  return vector;
}

RDMACOLL_INLINE void store(Floats vector, void* to, uint64_t offset, size_t bytes) {
  std::memcpy(static_cast<char*>(to) + offset, &vector, bytes);
}

// A whole vector, past the caches where the processor can.
RDMACOLL_INLINE void stream(Floats vector, float* to) {
#if RDMACOLL_VECTOR_BYTES == 64
  _mm512_stream_ps(to, reinterpret_cast<__m512>(vector));
#elif RDMACOLL_VECTOR_BYTES == 32
  _mm256_stream_ps(to, reinterpret_cast<__m256>(vector));
#elif defined(__SSE2__)
  _mm_stream_ps(to, reinterpret_cast<__m128>(vector));
#else
  store(vector, to, 0, kVectorBytes);
#endif
}

// The gradients of `vectors` as the sources give them: not yet negated, nor with a decay.
template <size_t vectors>
RDMACOLL_INLINE void fold_gradients(const Gradients& gradients, uint64_t offset, size_t bytes,
                                    Floats* folded) {
#pragma GCC unroll 4
  for (size_t i = 0; i < vectors; ++i)
    folded[i] = load(gradients.sources[0], offset + i * kVectorBytes, bytes);
  for (size_t source = 1; source < gradients.source_count; ++source)
#pragma GCC unroll 4
    for (size_t i = 0; i < vectors; ++i)
      folded[i] = folded[i] + load(gradients.sources[source], offset + i * kVectorBytes, bytes);
  if (gradients.divisor != 1)
#pragma GCC unroll 4
    for (size_t i = 0; i < vectors; ++i)
      folded[i] = folded[i] / static_cast<float>(gradients.divisor);
}

RDMACOLL_INLINE Floats gradient_of(const OptimizerStep& step, Floats folded, Floats value) {
  const Floats gradient = step.maximize ? -folded : folded;
  return step.decay != 0 ? gradient + step.decay * value : gradient;
}

template <Stores stores, size_t vectors, typename Rule>
RDMACOLL_INLINE void update_step(const OptimizerStep& step, const Rule& rule, const Arrays& arrays,
                                 uint64_t offset, size_t bytes) {
  Floats folded[vectors];
  fold_gradients<vectors>(arrays.gradients, offset, bytes, folded);
#pragma GCC unroll 4
  for (size_t i = 0; i < vectors; ++i) {
    const uint64_t at = offset + i * kVectorBytes;
    const Floats value = load(arrays.value, at, bytes);
    Floats state[Rule::kStates + 1];  // an array of none is none
    for (size_t s = 0; s < Rule::kStates; ++s) state[s] = load(arrays.state[s], at, bytes);
    const Floats next = rule.moved(step, value, gradient_of(step, folded[i], value), state);
    for (size_t s = 0; s < Rule::kStates; ++s) store(state[s], arrays.state[s], at, bytes);
    if constexpr (stores == Stores::Streamed) {
      stream(next, arrays.next + at / sizeof(float));
    } else {
      store(next, arrays.next, at, bytes);
    }
  }
}

constexpr uint64_t kLine = 64;
constexpr size_t kUnroll = 4;  // vectors in flight: one's latency hides in the others'

template <Stores stores, typename Rule>
RDMACOLL_INLINE void update(const OptimizerStep& step, const Rule& rule, const Arrays& arrays,
                            uint64_t count) {
  const uint64_t end = count * sizeof(float);
  uint64_t at = 0;
  if constexpr (stores == Stores::Streamed) {
    const uint64_t into_line = reinterpret_cast<uint64_t>(arrays.next) % kLine;
    const uint64_t head = into_line == 0 ? 0 : kLine - into_line;
    for (; at < head && at < end; at += sizeof(float))
      update_step<Stores::Cached, 1>(step, rule, arrays, at, sizeof(float));
  }
  for (; end - at >= kUnroll * kVectorBytes; at += kUnroll * kVectorBytes)
    update_step<stores, kUnroll>(step, rule, arrays, at, kVectorBytes);
  for (; end - at >= kVectorBytes; at += kVectorBytes)
    update_step<Stores::Cached, 1>(step, rule, arrays, at, kVectorBytes);
  if (at < end) update_step<Stores::Cached, 1>(step, rule, arrays, at, end - at);
#ifdef __SSE2__
  if constexpr (stores == Stores::Streamed) _mm_sfence();
#endif
}

// The step is a copy, so that its numbers stay in registers whatever is stored.
template <Stores stores>
void update_range(OptimizerStep step, const Arrays& arrays, uint64_t count) {
  switch (step.kind) {
    case OptimizerKind::Sgd:
      if (step.has_momentum) return update<stores>(step, Momentum{}, arrays, count);
      return update<stores>(step, Sgd{}, arrays, count);
    case OptimizerKind::Adagrad:
      return update<stores>(step, Adagrad{}, arrays, count);
    case OptimizerKind::RowwiseAdagrad:  // is for update_row()
      return;
    case OptimizerKind::Adam:
    case OptimizerKind::AdamW:
      return update<stores>(step, Adam{}, arrays, count);
  }
}

void update_elements(const OptimizerStep& step, const Gradients& gradients, const float* value,
                     float* next, float* const* state, uint64_t count, Stores stores) {
  const Arrays arrays = {gradients, value, next, state};
  if (stores == Stores::Streamed) return update_range<Stores::Streamed>(step, arrays, count);
  return update_range<Stores::Cached>(step, arrays, count);
}

constexpr size_t kPartialBytes = 16 * sizeof(float);
constexpr size_t kPartialVectors = kPartialBytes / kVectorBytes;

// Number j of the first half takes number j of the second, until one is left.
template <size_t bytes>
RDMACOLL_INLINE float total_of(Vector<float, bytes> sums) {
  if constexpr (bytes == sizeof(float)) {
    return sums[0];
  } else {
    Vector<float, bytes / 2> halves[2];
    std::memcpy(halves, &sums, bytes);
    return total_of<bytes / 2>(halves[0] + halves[1]);
  }
}

template <size_t vectors>
RDMACOLL_INLINE void add_squares(const OptimizerStep& step, const Arrays& arrays, uint64_t offset,
                                 size_t bytes, Floats* sums) {
  Floats folded[vectors];
  fold_gradients<vectors>(arrays.gradients, offset, bytes, folded);
#pragma GCC unroll 4
  for (size_t i = 0; i < vectors; ++i) {
    const Floats value = load(arrays.value, offset + i * kVectorBytes, bytes);
    const Floats gradient = gradient_of(step, folded[i], value);
    sums[i] = sums[i] + gradient * gradient;
  }
}

RDMACOLL_INLINE float sum_of_squares(const OptimizerStep& step, const Arrays& arrays,
                                     uint64_t count) {
  Floats sums[kPartialVectors] = {};
  const uint64_t end = count * sizeof(float);
  uint64_t at = 0;
  for (; end - at >= kPartialBytes; at += kPartialBytes)
    add_squares<kPartialVectors>(step, arrays, at, kVectorBytes, sums);
  // What the last vector lacks is 0, which changes no sum.
  for (size_t i = 0; at < end; ++i, at += kVectorBytes)
    add_squares<1>(step, arrays, at, end - at < kVectorBytes ? end - at : kVectorBytes, sums + i);
  Vector<float, kPartialBytes> all;
  std::memcpy(&all, sums, kPartialBytes);
  return total_of<kPartialBytes>(all);
}

void update_row(const OptimizerStep& given, const Gradients& gradients, const float* value,
                float* next, float* sum, uint64_t count) {
  const OptimizerStep step = given;  // so that its numbers stay in registers whatever is stored
  const Arrays arrays = {gradients, value, next, nullptr};
  *sum += sum_of_squares(step, arrays, count) / static_cast<float>(count);
  const Rowwise rule = {root_of(Floats{} + *sum) + step.eps};
  update<Stores::Cached>(step, rule, arrays, count);
}

constexpr Updates kUpdates = {update_elements, update_row};

}  // namespace
}  // namespace rdmacoll
