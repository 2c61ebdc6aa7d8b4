// stream_copy: a copy that goes past the caches. Ordinary stores fetch each line of the destination
// before they overwrite it, and leave it with this core; these do neither.
// Floor: memory. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rdmacoll {

// The ranges do not overlap. What is written is ordered before every later store of this thread.
void stream_copy(std::byte* to, const std::byte* from, uint64_t bytes);

enum class Stores : uint8_t { Cached, Streamed };

inline void copy_bytes(std::byte* to, const std::byte* from, uint64_t bytes, Stores stores) {
  if (stores == Stores::Streamed) {
    stream_copy(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace rdmacoll
