// ShardMemory: where a server gets the memory of dense shards.
// Floor: ps/server. Thread: the server's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/base/status.h"

namespace rdmacoll::ps {

class ShardMemory {
 public:
  virtual ~ShardMemory() = default;
  // Zeroed, and there as long as this. System: there is no room for so much.
  virtual Result<std::byte*> take(uint32_t table, uint64_t bytes) = 0;
};

}  // namespace rdmacoll::ps
