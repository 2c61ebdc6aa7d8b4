// HeapMemory: memory of shards from the heap. Floor: tests. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "csrc/base/limits.h"
#include "csrc/ps/server/shard_memory.h"

namespace rdmacoll::ps {

class HeapMemory final : public ShardMemory {
 public:
  Result<std::byte*> take(uint32_t, uint64_t bytes) override {
    all_.push_back(std::make_unique<CacheLine[]>((bytes + kLineBytes - 1) / kLineBytes));
    return all_.back()[0].bytes;
  }

 private:
  struct alignas(kLineBytes) CacheLine {
    std::byte bytes[kLineBytes]{};
  };
  std::vector<std::unique_ptr<CacheLine[]>> all_;
};

}  // namespace rdmacoll::ps
