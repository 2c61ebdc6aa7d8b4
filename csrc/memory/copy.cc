// Copies by SSE2, which every x86-64 has; elsewhere memcpy. Floor: memory.
#include "csrc/memory/copy.h"

#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace rdmacoll {

#ifdef __SSE2__

namespace {

constexpr uint64_t kLine = 64;
constexpr uint64_t kPage = 4096;

template <Stores stores>
void store(__m128i* to, __m128i value) {
  if constexpr (stores == Stores::Streamed) {
    _mm_stream_si128(to, value);
  } else {
    _mm_store_si128(to, value);
  }
}

// A whole line at a time: half of one, streamed, would go to memory by itself.
template <Stores stores>
void copy_line(std::byte* to, const std::byte* from) {
  const auto* source = reinterpret_cast<const __m128i*>(from);
  auto* destination = reinterpret_cast<__m128i*>(to);
  const __m128i first = _mm_loadu_si128(source), second = _mm_loadu_si128(source + 1);
  const __m128i third = _mm_loadu_si128(source + 2), fourth = _mm_loadu_si128(source + 3);
  store<stores>(destination, first);
  store<stores>(destination + 1, second);
  store<stores>(destination + 2, third);
  store<stores>(destination + 3, fourth);
}

template <Stores stores>
void copy_lines(std::byte* to, const std::byte* from, uint64_t bytes) {
  const uint64_t into_line = reinterpret_cast<uint64_t>(to) % kLine;
  const uint64_t head = into_line == 0 ? 0 : kLine - into_line;
  if (bytes < head + kLine) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::memcpy(to, from, head);
  uint64_t at = head;
  for (; at + kLine <= bytes; at += kLine) copy_line<stores>(to + at, from + at);
  std::memcpy(to + at, from + at, bytes - at);
}

// AMD's `rep movsb`, which memcpy is from some KiB on, takes 15 times as long where the destination
// lies up to a line further into its page than the source does into its own: slots begin with a
// page, and large arrays of numpy 16 bytes into one. (glibc bug 30994)
bool is_slow_for_memcpy(const std::byte* to, const std::byte* from) {
  const uint64_t ahead = reinterpret_cast<uint64_t>(to) - reinterpret_cast<uint64_t>(from);
  return ahead % kPage != 0 && ahead % kPage < kLine;
}

}  // namespace

void copy_bytes(std::byte* to, const std::byte* from, uint64_t bytes, Stores stores) {
  if (stores == Stores::Streamed) {
    copy_lines<Stores::Streamed>(to, from, bytes);
    _mm_sfence();
  } else if (is_slow_for_memcpy(to, from)) {
    copy_lines<Stores::Cached>(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

#else

void copy_bytes(std::byte* to, const std::byte* from, uint64_t bytes, Stores) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace rdmacoll
