// State: what all parts of a server look at: the tables, the map of buckets, and how long this
// server may believe that map. Floor: ps/server. Thread: the server's.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "csrc/base/clock.h"
#include "csrc/base/limits.h"
#include "csrc/ps/server/applied.h"
#include "csrc/ps/server/server_table.h"
#include "csrc/ps/server/shard_memory.h"
#include "csrc/ps/table/bucket_map.h"
#include "csrc/ps/wire/record.h"

namespace rdmacoll::ps {

struct State {
  const ServerId me;
  ShardMemory& memory;
  const Clock& clock;
  const bool keeps_backups;  // replicas=2
  BucketMap map;
  int64_t leased_until_ns = 0;
  std::array<int64_t, kBuckets> serves_from_ns{};
  // Their backups are to be their primaries: until the map says so nothing of them is answered.
  std::array<bool, kBuckets> hands_over{};
  // What was pushed to and pulled of each, in bytes with what is around them.
  std::array<uint64_t, kBuckets> loads{};
  std::map<uint32_t, ServerTable> tables{};
  Applied applied{};

  void add_load(uint32_t bucket, uint64_t bytes) { loads[bucket] += kLineBytes + bytes; }
  // InvalidArgument: there is none of that kind, or it was dropped.
  Result<ServerTable*> table_of(uint32_t table, TableKind kind) {
    const auto found = tables.find(table);
    if (found == tables.end() || found->second.spec().kind != kind) return makes_no_sense(kRequest);
    RDMACOLL_RETURN_IF_ERROR(found->second.check_there());
    return &found->second;
  }
  bool is_primary(uint32_t bucket) const { return map.of(bucket).primary == me; }
  // Whether it may say what is in the bucket.
  bool serves(uint32_t bucket, int64_t now_ns) const {
    return is_primary(bucket) && now_ns < leased_until_ns && now_ns >= serves_from_ns[bucket] &&
           !hands_over[bucket];
  }
};

}  // namespace rdmacoll::ps
