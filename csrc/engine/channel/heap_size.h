// How large a heap is, and how large a peer's may be for this process to map it, from what the user
// asks for and what the process may have.
// Floor: engine/channel. Thread: any; values.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/config.h"
#include "csrc/base/memory_limits.h"
#include "csrc/base/status.h"

namespace rdmacoll {

struct HeapSize {
  uint64_t bytes = 0;   // 0: there is none
  std::string warning;  // why a limit makes it smaller, and the remedy; empty: none does
};

// InvalidArgument: RDMACOLL_HEAP_BYTES names more than can be mapped.
Result<HeapSize> choose_heap_size(const Config& config, const MemoryLimits& limits);

// The largest heap of a peer that this process maps, once it has its own. How many peers there are
// the launcher says; where it does not and address space is limited, no heap is mapped.
uint64_t largest_peer_heap(const Config& config, const MemoryLimits& limits);

}  // namespace rdmacoll
