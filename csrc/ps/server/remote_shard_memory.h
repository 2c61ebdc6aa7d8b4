// RemoteShardMemory: memory of dense shards, in extents of remote memory that belong to one table
// each, and that workers can read. Floor: ps/server. Thread: the server's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "csrc/ps/server/shard_memory.h"
#include "csrc/ps/wire/record.h"
#include "csrc/remote/remote.h"

namespace rdmacoll::ps {

class RemoteShardMemory final : public ShardMemory {
 public:
  // server: which one has it. limit_bytes: of all tables. The remote memory outlives it.
  RemoteShardMemory(Remote& remote, uint32_t server, uint64_t limit_bytes)
      : ShardMemory(limit_bytes), remote_(remote), server_(server) {}
  ~RemoteShardMemory() override {
    for (uint32_t number = 1; number <= numbers_; ++number) {
      static_cast<void>(remote_.revoke(extent_name(server_, number), kRevokeMs, {}));
    }
  }

 private:
  Result<ShardMemoryPiece> make(uint32_t table, uint64_t bytes) override {
    Extent& extent = extents_[table];
    if (extent.memory == nullptr || bytes > extent.memory->bytes() - extent.used) {
      RDMACOLL_RETURN_IF_ERROR(add(extent, bytes));
    }
    const ShardMemoryPiece made{extent.memory->data() + extent.used,
                                {extent.number, static_cast<uint32_t>(extent.used)}};
    extent.used += bytes;
    return made;
  }
  static constexpr int64_t kRevokeMs = 50;  // who reads is cut off then
  struct Extent {
    RemoteMemoryPtr memory;
    uint32_t number = 0;
    uint64_t used = 0;
  };
  // Pages are taken when they are touched, but where a device registers them at once: so a table's
  // first extents are small.
  Status add(Extent& extent, uint64_t at_least) {
    const uint64_t next = extent.memory == nullptr ? kFirstExtentBytes : 2 * extent.memory->bytes();
    auto made =
        remote_.allocate(std::max(at_least, std::min(next, kMostExtentBytes)), Others::OnlyRead);
    if (!made.ok()) return made.status();
    full_.push_back(std::move(extent.memory));
    extent = {made.take(), ++numbers_, 0};
    return remote_.expose(
        {.name = extent_name(server_, extent.number), .bytes = extent.memory->bytes()},
        extent.memory, 0);
  }

  Remote& remote_;
  const uint32_t server_;
  uint32_t numbers_ = 0;                // of extents
  std::map<uint32_t, Extent> extents_;  // the newest of each table
  std::vector<RemoteMemoryPtr> full_;
};

}  // namespace rdmacoll::ps
