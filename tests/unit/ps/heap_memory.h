// HeapMemory: memory of shards from the heap, each in an extent of its own. Floor: tests. Thread:
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "csrc/base/limits.h"
#include "csrc/ps/server/shard_memory.h"

namespace rdmacoll::ps {

class HeapMemory final : public ShardMemory {
 public:
  explicit HeapMemory(uint64_t limit_bytes = UINT64_MAX) : ShardMemory(limit_bytes) {}
  const std::byte* at(const ShardPlace& place) const { return all_[place.extent - 1][0].bytes; }
  uint64_t extents() const { return all_.size(); }
  std::span<const std::byte> extent(uint32_t number) const {
    return {all_[number - 1][0].bytes, bytes_[number - 1]};
  }

 private:
  Result<ShardMemoryPiece> make(uint32_t, uint64_t bytes) override {
    all_.push_back(std::make_unique<CacheLine[]>(bytes / kLineBytes));
    bytes_.push_back(bytes);
    return ShardMemoryPiece{all_.back()[0].bytes, {static_cast<uint32_t>(all_.size()), 0}};
  }
  struct alignas(kLineBytes) CacheLine {
    std::byte bytes[kLineBytes]{};
  };
  std::vector<std::unique_ptr<CacheLine[]>> all_;
  std::vector<uint64_t> bytes_;
};

}  // namespace rdmacoll::ps
