// Formats: how a vector of elements lies in memory, and as what it is folded. Included once by each
// fold_*.cc, which defines RDMACOLL_VECTOR_BYTES: 64 means AVX-512, 32 AVX2 and F16C, 16 anything.
// Unnamed namespace: the same names have another body in each set.
// Floor: reduce. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>

#define RDMACOLL_INLINE [[gnu::always_inline]] static inline

namespace rdmacoll {
namespace {

constexpr size_t kVectorBytes = RDMACOLL_VECTOR_BYTES;

template <typename T, size_t bytes = kVectorBytes>
using Vector [[gnu::vector_size(bytes)]] = T;

using Floats = Vector<float>;
using Words = Vector<uint32_t>;
using Integers = Vector<int32_t>;
using Halves = Vector<uint16_t, kVectorBytes / 2>;  // as many as a vector has floats

RDMACOLL_INLINE Words bits_of(Floats value) { return reinterpret_cast<Words>(value); }
RDMACOLL_INLINE Floats floats_of(Words bits) { return reinterpret_cast<Floats>(bits); }

template <typename T>
struct Plain {
  using Memory = Vector<T>;
  using Folded = Vector<T>;
  RDMACOLL_INLINE Folded widen(Memory memory) { return memory; }
  RDMACOLL_INLINE Memory narrow(Folded folded) { return folded; }
};

// Any byte but 0 is true; a result is always 0 or 1.
struct Boolean {
  using Memory = Vector<uint8_t>;
  using Folded = Vector<uint8_t>;
  RDMACOLL_INLINE Folded widen(Memory memory) { return reinterpret_cast<Folded>(memory != 0) & 1; }
  RDMACOLL_INLINE Memory narrow(Folded folded) { return folded; }
};

// The elements at even and at odd places, apart.
struct Pair {
  Floats even, odd;
};

// The upper half of a float. Two lie in a word and are widened where they are, without a shuffle.
// A NaN here is an input's or the processor's own: its lower half is zero, so that rounding leaves
// it a NaN.
struct Brain {
  using Memory = Words;
  using Folded = Pair;
  RDMACOLL_INLINE Folded widen(Memory memory) {
    return {floats_of(memory << 16), floats_of(memory & 0xffff0000)};
  }
  RDMACOLL_INLINE Memory narrow(Folded folded) {
    return (rounded(folded.even) >> 16) | (rounded(folded.odd) & 0xffff0000);
  }
  RDMACOLL_INLINE Words rounded(Floats value) {
    const Words bits = bits_of(value);
    return bits + 0x7fff + ((bits >> 16) & 1);
  }
};

// IEEE binary16, by the processor.
#if RDMACOLL_VECTOR_BYTES == 64
struct Half {
  using Memory = Halves;
  using Folded = Floats;
  static constexpr __mmask16 kAll = 0xffff;  // the unmasked forms trip a false warning of GCC 12

  RDMACOLL_INLINE Folded widen(Memory memory) {
    return reinterpret_cast<Folded>(_mm512_maskz_cvtph_ps(kAll, reinterpret_cast<__m256i>(memory)));
  }
  RDMACOLL_INLINE Memory narrow(Folded folded) {
    return reinterpret_cast<Memory>(
        _mm512_maskz_cvtps_ph(kAll, reinterpret_cast<__m512>(folded), _MM_FROUND_TO_NEAREST_INT));
  }
};
#elif RDMACOLL_VECTOR_BYTES == 32
struct Half {
  using Memory = Halves;
  using Folded = Floats;
  RDMACOLL_INLINE Folded widen(Memory memory) {
    return reinterpret_cast<Folded>(_mm256_cvtph_ps(reinterpret_cast<__m128i>(memory)));
  }
  RDMACOLL_INLINE Memory narrow(Folded folded) {
    return reinterpret_cast<Memory>(
        _mm256_cvtps_ph(reinterpret_cast<__m256>(folded), _MM_FROUND_TO_NEAREST_INT));
  }
};
#elif defined(__aarch64__)
struct Half {
  using Memory = Halves;
  using Folded = Floats;
  RDMACOLL_INLINE Folded widen(Memory memory) {
    return reinterpret_cast<Folded>(vcvt_f32_f16(reinterpret_cast<float16x4_t>(memory)));
  }
  RDMACOLL_INLINE Memory narrow(Folded folded) {
    return reinterpret_cast<Memory>(vcvt_f16_f32(reinterpret_cast<float32x4_t>(folded)));
  }
};
#else
// By hand, two in a word. The same bits, and like the processors' own it ignores flush-to-zero
// modes.
struct Half {
  using Memory = Words;
  using Folded = Pair;
  static constexpr uint32_t kRebias = (127 - 15) << 23;

  RDMACOLL_INLINE Folded widen(Memory memory) {
    return {widened(memory & 0xffff), widened(memory >> 16)};
  }
  RDMACOLL_INLINE Memory narrow(Folded folded) {
    return narrowed(folded.even) | (narrowed(folded.odd) << 16);
  }

  RDMACOLL_INLINE Floats widened(Words all) {
    const Words magnitude = all & 0x7fff;
    const Words normal = (magnitude << 13) + kRebias;
    const Words special =
        ((magnitude << 13) + 2 * kRebias) | (magnitude > 0x7c00 ? Words{} + 0x400000 : Words{});
    const Words subnormal =
        bits_of(__builtin_convertvector(reinterpret_cast<Integers>(magnitude), Floats) * 0x1p-24f);
    const Words value = magnitude < 0x400 ? subnormal : magnitude < 0x7c00 ? normal : special;
    return floats_of(value | ((all & 0x8000) << 16));
  }

  RDMACOLL_INLINE Words narrowed(Floats folded) {
    const Words all = bits_of(folded);
    const Words magnitude = all & 0x7fffffff;
    const Words normal = (magnitude - kRebias + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    // One half has the spacing of the subnormals, 2^-24: the addition rounds to it.
    const Words subnormal = bits_of(floats_of(magnitude) + 0.5f) - 0x3f000000;
    const Words infinite = Words{} + 0x7c00;
    const Words nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
    const Words value = magnitude < 0x38800000   ? subnormal
                        : magnitude < 0x47800000 ? normal
                        : magnitude > 0x7f800000 ? nan
                                                 : infinite;
    return value | ((all >> 16) & 0x8000);
  }
};
#endif

}  // namespace
}  // namespace rdmacoll
