// How the emulated device reads and writes users' memory: by atomic words, as memory sees it from a
// bus. A program that touches the same bytes without a completion in between, and not atomically
// itself, is a data race to ThreadSanitizer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rdmacoll::fake {

inline void device_write(std::byte* to, const std::byte* from, size_t bytes) {
  while (bytes > 0) {
    if (bytes >= 8 && reinterpret_cast<uintptr_t>(to) % 8 == 0) {
      uint64_t word;
      std::memcpy(&word, from, sizeof word);
      std::atomic_ref(*reinterpret_cast<uint64_t*>(to)).store(word, std::memory_order_relaxed);
      to += 8, from += 8, bytes -= 8;
    } else {
      std::atomic_ref(*to).store(*from, std::memory_order_relaxed);
      ++to, ++from, --bytes;
    }
  }
}

// A READ that is posted when another is done reads what was stored before what that one has read.
inline void device_read(std::byte* to, std::byte* from, size_t bytes) {
  while (bytes > 0) {
    if (bytes >= 8 && reinterpret_cast<uintptr_t>(from) % 8 == 0) {
      const uint64_t word =
          std::atomic_ref(*reinterpret_cast<uint64_t*>(from)).load(std::memory_order_acquire);
      std::memcpy(to, &word, sizeof word);
      to += 8, from += 8, bytes -= 8;
    } else {
      *to = std::atomic_ref(*from).load(std::memory_order_relaxed);
      ++to, ++from, --bytes;
    }
  }
}

}  // namespace rdmacoll::fake
