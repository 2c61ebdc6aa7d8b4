// HeapMemory: memory of shards from the heap, each in an extent of its own. Floor: tests. Thread:
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "csrc/base/limits.h"
#include "csrc/ps/server/shard_memory.h"

namespace rdmacoll::ps {

class HeapMemory final : public ShardMemory {
 public:
  explicit HeapMemory(uint64_t limit_bytes = UINT64_MAX) : HeapMemory(limit_bytes, steady()) {}
  HeapMemory(uint64_t limit_bytes, const Clock& clock) : ShardMemory(limit_bytes, clock) {}
  // nullptr, or empty: its table has let go of it. It is still there for who reads it.
  const std::byte* at(const ShardPlace& place) const {
    return gone_.contains(place.extent) ? nullptr : all_[place.extent - 1][0].bytes;
  }
  uint64_t extents() const { return all_.size(); }
  std::span<const std::byte> extent(uint32_t number) const {
    if (gone_.contains(number)) return {};
    return {all_[number - 1][0].bytes, bytes_[number - 1]};
  }

 private:
  static const Clock& steady() {
    static const SteadyClock clock;
    return clock;
  }
  Result<ShardMemoryPiece> make(uint32_t table, uint64_t bytes) override {
    all_.push_back(std::make_unique<CacheLine[]>(bytes / kLineBytes));
    // As of a table that was dropped: nobody may take it for zeros.
    std::memset(all_.back()[0].bytes, 0xa5, bytes);
    bytes_.push_back(bytes);
    of_table_[table].push_back(static_cast<uint32_t>(all_.size()));
    return ShardMemoryPiece{all_.back()[0].bytes, {static_cast<uint32_t>(all_.size()), 0}, false};
  }
  std::shared_ptr<void> detach(uint32_t table) override {
    gone_.insert(of_table_[table].begin(), of_table_[table].end());
    return nullptr;
  }
  struct alignas(kLineBytes) CacheLine {
    std::byte bytes[kLineBytes]{};
  };
  std::vector<std::unique_ptr<CacheLine[]>> all_;
  std::vector<uint64_t> bytes_;
  std::map<uint32_t, std::vector<uint32_t>> of_table_;  // extents
  std::set<uint32_t> gone_;
};

}  // namespace rdmacoll::ps
