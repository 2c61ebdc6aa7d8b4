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
#include "csrc/ps/wire/record.h"
#include "csrc/remote/remote.h"

namespace rdmacoll::ps {

class RemoteShardMemory final : public ShardMemory {
 public:
  // server: which one has it. limit_bytes: of all tables. The remote memory and the clock outlive
  // it.
  RemoteShardMemory(Remote& remote, uint32_t server, uint64_t limit_bytes, const Clock& clock)
      : ShardMemory(limit_bytes, clock), remote_(remote), server_(server) {}

 private:
  static constexpr int64_t kRevokeMs = 50;  // who reads is cut off then
  struct Extent {
    RemoteMemoryPtr memory;
    uint32_t number = 0;
    uint64_t used = 0;
  };
  // Of a table: the last one has room. They are taken back from who reads them when they go.
  struct Extents {
    Extents(Remote& remote, uint32_t server) : remote(remote), server(server) {}
    ~Extents() {
      for (const Extent& extent : all) {
        static_cast<void>(remote.revoke(extent_name(server, extent.number), kRevokeMs, {}));
      }
    }
    Extents(const Extents&) = delete;
    Extents& operator=(const Extents&) = delete;

    Remote& remote;
    const uint32_t server;
    std::vector<Extent> all{};
  };

  Result<ShardMemoryPiece> make(uint32_t table, uint64_t bytes) override {
    auto& extents = extents_[table];
    if (extents == nullptr) extents = std::make_shared<Extents>(remote_, server_);
    std::vector<Extent>& all = extents->all;
    if (all.empty() || bytes > all.back().memory->bytes() - all.back().used) {
      RDMACOLL_RETURN_IF_ERROR(add(all, bytes));
    }
    Extent& extent = all.back();
    const ShardMemoryPiece made{extent.memory->data() + extent.used,
                                {extent.number, static_cast<uint32_t>(extent.used)}};
    extent.used += bytes;
    return made;
  }
  // Pages are taken when they are touched, but where a device registers them at once: so a table's
  // first extents are small.
  Status add(std::vector<Extent>& all, uint64_t at_least) {
    const uint64_t next = all.empty() ? kFirstExtentBytes : 2 * all.back().memory->bytes();
    auto made =
        remote_.allocate(std::max(at_least, std::min(next, kMostExtentBytes)), Others::OnlyRead);
    if (!made.ok()) return made.status();
    all.push_back({made.take(), ++numbers_, 0});
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
  uint32_t numbers_ = 0;                                  // of extents
  std::map<uint32_t, std::shared_ptr<Extents>> extents_;  // by table
};

}  // namespace rdmacoll::ps
