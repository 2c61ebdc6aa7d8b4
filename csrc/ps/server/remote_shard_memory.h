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
      : remote_(remote), server_(server), limit_bytes_(limit_bytes) {}
  ~RemoteShardMemory() override {
    for (uint32_t number = 1; number <= numbers_; ++number) {
      static_cast<void>(remote_.revoke(extent_name(server_, number), kRevokeMs, {}));
    }
  }

  Result<ShardMemoryPiece> take(uint32_t table, uint64_t bytes) override {
    Extent& extent = extents_[table];
    const uint64_t spans = padded(bytes);
    if (spans > limit_bytes_ - taken_bytes_) {
      return Status(StatusCode::System,
                    "the server has no room for " + std::to_string(bytes) + " more bytes: " +
                        std::to_string(taken_bytes_) + " of " + std::to_string(limit_bytes_) +
                        " are used; start more servers, or raise --server-memory");
    }
    if (extent.memory == nullptr || spans > extent.memory->bytes() - extent.used) {
      RDMACOLL_RETURN_IF_ERROR(add(extent, spans));
    }
    const ShardMemoryPiece taken{extent.memory->data() + extent.used,
                                 {extent.number, static_cast<uint32_t>(extent.used)}};
    extent.used += spans;
    taken_bytes_ += spans;
    return taken;
  }
  uint64_t taken_bytes() const { return taken_bytes_; }

 private:
  static constexpr int64_t kRevokeMs = 50;  // who reads is cut off then
  struct Extent {
    RemoteMemoryPtr memory;
    uint32_t number = 0;
    uint64_t used = 0;
  };
  // Pages are taken when they are touched, but where a device registers them at once.
  Status add(Extent& extent, uint64_t at_least) {
    auto made = remote_.allocate(std::max(at_least, kExtentBytes), Others::OnlyRead);
    if (!made.ok()) return made.status();
    full_.push_back(std::move(extent.memory));
    extent = {made.take(), ++numbers_, 0};
    return remote_.expose(
        {.name = extent_name(server_, extent.number), .bytes = extent.memory->bytes()},
        extent.memory, 0);
  }

  Remote& remote_;
  const uint32_t server_;
  const uint64_t limit_bytes_;
  uint32_t numbers_ = 0;  // of extents
  uint64_t taken_bytes_ = 0;
  std::map<uint32_t, Extent> extents_;  // the newest of each table
  std::vector<RemoteMemoryPtr> full_;
};

}  // namespace rdmacoll::ps
