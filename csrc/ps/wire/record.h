// Record: what a worker and a server say to each other: a head of one cache line, and a body behind
// it. It comes from outside, so reading trusts nothing.
// Floor: ps/wire. Thread: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "csrc/base/limits.h"
#include "csrc/base/status.h"
#include "csrc/ps/table/push_as.h"

namespace rdmacoll::ps {

enum class RecordKind : uint16_t {
  Skip,       // nothing: the rest of the ring is too short for the next one
  Leave,      // the sender uses the connection no more
  Create,     // a table: its spec -> Done
  Push,       // parts, and what is pushed (push.h) -> Done
  Forward,    // the same, of a primary to a backup -> Done
  Install,    // a part of a bucket, of a primary to who is to be its backup (install.h) -> Done
  PullRange,  // a range of a shard -> Values
  PullRows,   // ids -> Values
  PullSteps,  // of a shard of a table with a pace -> Values: the step of each of so many workers
  PullLoads,  // of a server -> Values: of each bucket that it is the primary of, its load
  HandOver,   // buckets -> Done: their backups will be their primaries
  Offer,      // buckets, of a server -> Done: it would be their backup, in the place of another
  SaveShard,  // a shard: the `first` of its arrays -> Values: pushes, floats (table/saved.h)
  ListRows,   // a bucket, as shard; the id to begin with -> Values: how many, ids that follow
  SaveRows,   // ids -> Values: of each row pushes, floats
  Done,       // it is done; or it failed: the body says why
  Elsewhere,  // it is not done: the server has not the bucket now, or not the pushes before
  Values,     // what was asked for
};
inline constexpr auto kLastRecordKind = RecordKind::Values;

struct alignas(kLineBytes) RecordHead {
  uint32_t bytes = 0;  // of the body
  RecordKind kind = RecordKind::Skip;
  // Of a reply, a StatusCode; of a push, a PushAs.
  uint16_t code = 0;
  uint64_t number = 0;  // by who asks; a reply has that of its request
  // How far the sender has read what it gets from the receiver, in bytes since they met.
  uint64_t freed = 0;
  uint32_t table = 0;
  uint32_t parts = 0;  // of a push
  // Of a dense table: the shard, and where the range begins there. Of the answer to PullRange: the
  // shard's place (shard_place.h); of that to PullRows: the place of the table's RowDirectory.
  uint32_t shard = 0;
  uint32_t first =
      0;  // of a push to a table with a pace: the number of its generation (pace_steps.h)
  uint32_t count = 0;  // of rows, of the elements of a range, or of workers
  // Of a push of a range: that of the worker's loans in which its values lie; 0: they are here.
  uint32_t loan = 0;
  uint64_t worker = 0;  // of a push: whose it is
  // Of a push to a table with a pace: whose step it is; or how many workers there are, and the step
  // that they have made. Of a pull: it waits until all have pushed it.
  uint32_t rank = 0;
  uint32_t step = 0;
};
static_assert(sizeof(RecordHead) == kLineBytes);

inline constexpr const char* kRequest = "the request";
// What who has sent a record is told that no version of rdmacoll sends.
inline Status makes_no_sense(const char* what) {
  return Status(StatusCode::InvalidArgument,
                std::string(what) + " makes no sense; install the same rdmacoll everywhere");
}

// What it takes in a ring.
constexpr uint64_t padded(uint64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// What a push has for one bucket.
struct PushPart {
  uint32_t bucket = 0;
  uint32_t rows = 0;  // of a table of rows
  // Its number, of those of this worker to this bucket: they are applied in turn, and once.
  uint64_t push = 0;
  uint32_t epoch = 0;  // of a forwarded one: the bucket's, as the primary knows it
  uint32_t unused = 0;
};
static_assert(sizeof(PushPart) == 24);

}  // namespace rdmacoll::ps
