// RemoteShardMemory: memory of dense shards, in extents of remote memory that belong to one table
// each, and that workers can read. Floor: ps/server. Thread: the server's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/ps/server/shard_memory.h"
#include "csrc/ps/server/spare_extents.h"
#include "csrc/ps/wire/record.h"
#include "csrc/remote/remote.h"

namespace rdmacoll::ps {

class RemoteShardMemory final : public ShardMemory {
 public:
  // server: which one has it. limit_bytes: of all tables. The remote memory and the clock outlive
  // it.
  RemoteShardMemory(Remote& remote, uint32_t server, uint64_t limit_bytes, const Clock& clock)
      : ShardMemory(limit_bytes, clock),
        remote_(remote),
        server_(server),
        spares_(std::make_shared<SpareExtents>(limit_bytes / kSpared)) {}

 private:
  static constexpr int64_t kRevokeMs = 50;  // who reads is cut off then
  static constexpr uint64_t kSpared = 8;    // of the limit that part is kept besides
  struct Extent {
    RemoteMemoryPtr memory;
    uint32_t number = 0;
    uint64_t used = 0;
    bool is_zeroed = true;
  };
  // Of a table: the last one has room. They are taken back from who reads them when they go.
  struct Extents {
    Extents(Remote& remote, uint32_t server, std::shared_ptr<SpareExtents> spares)
        : remote(remote), server(server), spares(std::move(spares)) {}
    // One that somebody may read still is nobody else's: who reads it sees that it is revoked, but
    // only when that has been told.
    ~Extents() {
      for (Extent& extent : all) {
        auto late = remote.revoke(extent_name(server, extent.number), kRevokeMs, {});
        if (late.ok() && late.value().empty()) spares->keep(std::move(extent.memory));
      }
    }
    Extents(const Extents&) = delete;
    Extents& operator=(const Extents&) = delete;

    Remote& remote;
    const uint32_t server;
    const std::shared_ptr<SpareExtents> spares;
    std::vector<Extent> all{};
  };

  Result<ShardMemoryPiece> make(uint32_t table, uint64_t bytes) override {
    auto& extents = extents_[table];
    if (extents == nullptr) extents = std::make_shared<Extents>(remote_, server_, spares_);
    std::vector<Extent>& all = extents->all;
    if (all.empty() || bytes > all.back().memory->bytes() - all.back().used) {
      RDMACOLL_RETURN_IF_ERROR(add(all, bytes));
    }
    Extent& extent = all.back();
    const ShardMemoryPiece made{extent.memory->data() + extent.used,
                                {extent.number, static_cast<uint32_t>(extent.used)},
                                extent.is_zeroed};
    extent.used += bytes;
    return made;
  }
  // Pages are taken when they are touched, but where a device registers them at once: so a table's
  // first extents are small.
  Status add(std::vector<Extent>& all, uint64_t at_least) {
    const uint64_t next = all.empty() ? kFirstExtentBytes : 2 * all.back().memory->bytes();
    const uint64_t bytes = std::max(at_least, std::min(next, kMostExtentBytes));
    RemoteMemoryPtr memory = spares_->take(bytes);
    const bool is_new = memory == nullptr;
    if (is_new) {
      auto made = remote_.allocate(bytes, Others::OnlyRead);
      if (!made.ok()) return made.status();
      memory = made.take();
    }
    all.push_back({std::move(memory), ++numbers_, 0, is_new});
    const Extent& extent = all.back();
    return remote_.expose(
        {.name = extent_name(server_, extent.number), .bytes = extent.memory->bytes()},
        extent.memory, 0);
  }
  std::shared_ptr<void> detach(uint32_t table) override {
    const auto extents = extents_.extract(table);
    return extents ? extents.mapped() : nullptr;
  }

  Remote& remote_;
  const uint32_t server_;
  const std::shared_ptr<SpareExtents> spares_;
  uint32_t numbers_ = 0;                                  // of extents
  std::map<uint32_t, std::shared_ptr<Extents>> extents_;  // by table
};

}  // namespace rdmacoll::ps
