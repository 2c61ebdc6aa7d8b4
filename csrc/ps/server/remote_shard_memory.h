// RemoteShardMemory: memory of dense shards that workers read over the network: extents, each of
// which is exposed under a name of its table's. Floor: ps/server. Thread: the server's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "csrc/ps/server/shard_memory.h"
#include "csrc/ps/wire/extent_name.h"
#include "csrc/remote/remote.h"

namespace rdmacoll::ps {

class RemoteShardMemory final : public ShardMemory {
 public:
  // limit_bytes: of all tables. The remote memory outlives it.
  RemoteShardMemory(Remote& remote, uint64_t limit_bytes)
      : remote_(remote), limit_bytes_(limit_bytes) {}

  Result<Taken> take(uint32_t table, uint64_t bytes) override {
    Extent& extent = extents_[table];
    const uint64_t spans = padded(bytes);
    if (spans > limit_bytes_ - taken_bytes_) {
      return Status(StatusCode::System,
                    "the server has no room for " + std::to_string(bytes) + " more bytes: " +
                        std::to_string(taken_bytes_) + " of " + std::to_string(limit_bytes_) +
                        " are used; start more servers, or raise --server-memory");
    }
    if (extent.memory == nullptr || spans > extent.memory->bytes() - extent.used) {
      RDMACOLL_RETURN_IF_ERROR(add(table, extent, spans));
    }
    const Taken taken{extent.memory->data() + extent.used, {extent.number, extent.used}};
    extent.used += spans;
    taken_bytes_ += spans;
    return taken;
  }

 private:
  static constexpr uint64_t kExtentBytes = 64u << 20;
  struct Extent {  // the newest of a table
    RemoteMemoryPtr memory;
    uint64_t number = 0;  // from 1
    uint64_t used = 0;
  };
  // Pages are taken when they are touched, but where a device registers them at once.
  Status add(uint32_t table, Extent& extent, uint64_t at_least) {
    auto made = remote_.allocate(std::max(at_least, kExtentBytes), Others::OnlyRead);
    if (!made.ok()) return made.status();
    const uint64_t number = extent.number + 1;
    RDMACOLL_RETURN_IF_ERROR(remote_.expose(
        {.name = extent_name(table, number), .bytes = made.value()->bytes()}, made.value(), 0));
    extent = {made.take(), number, 0};
    return Status();
  }

  Remote& remote_;
  const uint64_t limit_bytes_;
  uint64_t taken_bytes_ = 0;
  std::map<uint32_t, Extent> extents_;
};

}  // namespace rdmacoll::ps
