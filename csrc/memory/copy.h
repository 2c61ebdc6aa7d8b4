// copy: how bytes are copied. Ordinary stores fetch each line of the destination before they
// overwrite it, and leave it with this core; streamed ones go past the caches and do neither.
// Floor: memory. Thread: any. The ranges never overlap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdmacoll {

enum class Stores : uint8_t { Cached, Streamed };

// Streamed bytes are ordered before every later store of this thread. Cached ones go at the same
// rate wherever the ranges lie.
void copy_bytes(std::byte* to, const std::byte* from, uint64_t bytes, Stores stores);

}  // namespace rdmacoll
