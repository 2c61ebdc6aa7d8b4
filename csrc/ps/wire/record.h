// Record: what a worker and a server say to each other: a head of one cache line, and a body behind
// it. It comes from outside, so reading trusts nothing.
// Floor: ps/wire. Thread: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "csrc/base/limits.h"
#include "csrc/base/status.h"
#include "csrc/ps/table/push_as.h"

namespace rdmacoll::ps {

enum class RecordKind : uint16_t {
  Skip,       // nothing: the rest of the ring is too short for the next one
  Create,     // a table: its spec -> Done
  PushRange,  // values for a range of a shard -> Done
  PushRows,   // parts of buckets: ids, then values -> Done
  PullRange,  // a range of a shard -> Values
  PullRows,   // ids -> Values
  Locate,     // a shard -> Place, where it can be read
  Done,       // it is done; or it failed: the body says why
  Values,     // floats
  Placed,     // where a shard can be read
  Leave,      // the worker, which uses the line no more
};
inline constexpr auto kLastRecordKind = RecordKind::Leave;

struct alignas(kLineBytes) RecordHead {
  uint32_t bytes = 0;  // of the body
  RecordKind kind = RecordKind::Skip;
  // Of a reply, a StatusCode; of a push, a PushAs.
  uint16_t code = 0;
  uint64_t number = 0;  // by who asks; a reply has that of its request
  // How far the sender has read what it gets from the receiver, in bytes since they met.
  uint64_t freed = 0;
  uint32_t table = 0;
  uint32_t parts = 0;  // of PushRows; rows of PullRows
  // Of a range: the shard; where it begins there, and how many elements it has.
  uint64_t shard = 0;
  uint32_t first = 0;
  uint32_t count = 0;
};
static_assert(sizeof(RecordHead) == kLineBytes);

// What it takes in a ring.
constexpr uint64_t padded(uint64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// A part of PushRows: so many rows of one bucket.
struct RowsPart {
  uint32_t bucket = 0;
  uint32_t rows = 0;
};

// What Placed says.
struct ShardPlace {
  uint64_t extent = 0;  // of the table at that server
  uint64_t offset = 0;  // there, of the shard's statement
};

}  // namespace rdmacoll::ps
