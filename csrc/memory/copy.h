// copy: how bytes are copied. Ordinary stores fetch each line of the destination before they
// overwrite it, and leave it with this core; streamed ones go past the caches and do neither.
// Floor: memory. Thread: any. The ranges never overlap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdmacoll {

enum class Stores : uint8_t { Cached, Streamed };

void copy_bytes(std::byte* to, const std::byte* from, uint64_t bytes, Stores stores);

// What is written is ordered before every later store of this thread.
void stream_copy(std::byte* to, const std::byte* from, uint64_t bytes);

// By ordinary stores, at the same rate wherever the ranges lie.
void cached_copy(std::byte* to, const std::byte* from, uint64_t bytes);

}  // namespace rdmacoll
