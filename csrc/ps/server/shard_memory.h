// ShardMemory: where a server gets the memory of dense shards, which workers read one-sidedly.
// Floor: ps/server. Thread: the server's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/base/status.h"
#include "csrc/ps/wire/record.h"

namespace rdmacoll::ps {

class ShardMemory {
 public:
  struct Taken {
    std::byte* data = nullptr;  // zeroed
    ShardPlace place{};
  };

  virtual ~ShardMemory() = default;
  // System: there is no room for so much.
  virtual Result<Taken> take(uint32_t table, uint64_t bytes) = 0;
};

}  // namespace rdmacoll::ps
