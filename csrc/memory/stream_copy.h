// stream_copy: a copy that goes past the caches, for results larger than they are. Ordinary stores
// fetch each line of the destination before they overwrite it; these do not.
// Floor: memory. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdmacoll {

// The ranges do not overlap. What is written is ordered before every later store of this thread.
void stream_copy(std::byte* to, const std::byte* from, uint64_t bytes);

}  // namespace rdmacoll
