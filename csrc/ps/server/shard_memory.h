// ShardMemory: where a server gets the memory of dense shards.
// Floor: ps/server. Thread: the server's.
#pragma once

#include <cstdint>

#include "csrc/base/status.h"
#include "csrc/ps/table/shard_place.h"

namespace rdmacoll::ps {

class ShardMemory {
 public:
  virtual ~ShardMemory() = default;
  // It is there as long as this. System: there is no room for so much.
  virtual Result<ShardMemoryPiece> take(uint32_t table, uint64_t bytes) = 0;
};

}  // namespace rdmacoll::ps
