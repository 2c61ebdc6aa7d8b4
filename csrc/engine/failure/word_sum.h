// A sum over words that a peer reads while they change: it sees the old ones, the new ones, or
// nothing, in whatever order words travel. No secret: who writes the words writes the sum.
// Floor: engine/failure. Thread: pure function.
#pragma once

#include <cstdint>
#include <span>

namespace rdmacoll {

// FNV-1a by words, each stirred: a word of another state in it changes the sum.
inline uint64_t sum_of(std::span<const uint64_t> words) {
  uint64_t sum = 1469598103934665603ull;
  for (const uint64_t word : words) {
    sum = (sum ^ word) * 1099511628211ull;
    sum ^= sum >> 29;
  }
  return sum;
}

}  // namespace rdmacoll
