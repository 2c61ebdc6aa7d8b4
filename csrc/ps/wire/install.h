// Install: what a primary tells a server that is to be the backup of a bucket: that it begins, then
// all that is in the bucket, in as many records as it takes. It comes from outside, so reading
// trusts nothing. Floor: ps/wire. Thread: values.
#pragma once

#include <cstdint>

#include "csrc/reduce/optimizer.h"

namespace rdmacoll::ps {

// The beginning of each body.
struct InstallHead {
  enum class What : uint32_t {
    Begin,   // workers and their last pushes (InstallPushes) follow; what was there is forgotten
    Values,  // of a dense shard: all floats follow
    State,   // of its optimizer, the `which`: all floats follow
    Rows,    // rows follow, each of an InstallRow and its floats
    // Of a dense shard of a table with a pace: what step each worker has reached (uint32_t)
    // follows; what has come of steps that are not whole is forgotten.
    Steps,
    Gathered,  // a gradient of such a step, of the worker of rank `which`: all floats follow
  };
  What what = What::Begin;
  uint32_t bucket = 0;
  uint32_t epoch = 0;  // of the bucket, as the primary knows it
  uint32_t which = 0;
  // Of Values: the pushes that the optimizer has seen; of Steps: the number of the generation; of
  // Gathered: the step.
  uint64_t number = 0;
  Rates rates{};  // of Gathered
};
static_assert(sizeof(InstallHead) == 40);

struct InstallPushes {
  uint64_t worker = 0;
  uint64_t last = 0;
};

struct InstallRow {
  uint64_t id = 0;
  uint64_t pushes = 0;
};

}  // namespace rdmacoll::ps
