// stream_copy, by SSE2, which every x86-64 has; elsewhere an ordinary copy. Floor: memory.
#include "csrc/memory/stream_copy.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace rdmacoll {

#ifdef __SSE2__

namespace {

constexpr uint64_t kLine = 64;

// A whole line at a time: half of one would go to memory by itself.
void stream_line(std::byte* to, const std::byte* from) {
  const auto* source = reinterpret_cast<const __m128i*>(from);
  auto* destination = reinterpret_cast<__m128i*>(to);
  const __m128i first = _mm_loadu_si128(source), second = _mm_loadu_si128(source + 1);
  const __m128i third = _mm_loadu_si128(source + 2), fourth = _mm_loadu_si128(source + 3);
  _mm_stream_si128(destination, first);
  _mm_stream_si128(destination + 1, second);
  _mm_stream_si128(destination + 2, third);
  _mm_stream_si128(destination + 3, fourth);
}

}  // namespace

void stream_copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  const uint64_t into_line = reinterpret_cast<uint64_t>(to) % kLine;
  const uint64_t head = into_line == 0 ? 0 : kLine - into_line;
  if (bytes < head + kLine) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::memcpy(to, from, head);
  uint64_t at = head;
  for (; at + kLine <= bytes; at += kLine) stream_line(to + at, from + at);
  std::memcpy(to + at, from + at, bytes - at);
  _mm_sfence();
}

#else

void stream_copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace rdmacoll
