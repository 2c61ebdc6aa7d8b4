// HeapMemory: memory of shards from the heap, each in an extent of its own. Floor: tests. Thread:
// one.
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
  explicit HeapMemory(uint64_t limit_bytes = UINT64_MAX) : ShardMemory(limit_bytes) {}
  const std::byte* at(const ShardPlace& place) const { return all_[place.extent - 1][0].bytes; }

 private:
  Result<ShardMemoryPiece> make(uint32_t, uint64_t bytes) override {
    all_.push_back(std::make_unique<CacheLine[]>(bytes / kLineBytes));
    return ShardMemoryPiece{all_.back()[0].bytes, {static_cast<uint32_t>(all_.size()), 0}};
  }
  struct alignas(kLineBytes) CacheLine {
    std::byte bytes[kLineBytes]{};
  };
  std::vector<std::unique_ptr<CacheLine[]>> all_;
};

}  // namespace rdmacoll::ps
