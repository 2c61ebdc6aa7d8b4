// Update: what is done to a word of a peer in one step, whoever else does the same there.
// Floor: transport. Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rdmacoll {

inline constexpr uint64_t kWordBytes = 8;

struct Update {
  enum class Kind : uint8_t {
    Add,          // mod 2^64
    CompareSwap,  // it becomes the operand if it is what is expected
  };
  Kind kind = Kind::Add;
  uint64_t operand = 0;
  uint64_t expected = 0;  // of CompareSwap

  static Update add(uint64_t operand) { return {Kind::Add, operand}; }
  static Update compare_swap(uint64_t expected, uint64_t desired) {
    return {Kind::CompareSwap, desired, expected};
  }

  // By this CPU, to an aligned word of memory that it may write. Returns what was there before.
  uint64_t apply_to(std::byte* word) const {
    const std::atomic_ref<uint64_t> there(*reinterpret_cast<uint64_t*>(word));
    if (kind == Kind::Add) return there.fetch_add(operand);
    uint64_t before = expected;
    there.compare_exchange_strong(before, operand);
    return before;
  }
};

}  // namespace rdmacoll
