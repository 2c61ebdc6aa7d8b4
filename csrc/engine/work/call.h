// Call: an operation as the user has called it, to tell people and other ranks. Plain bytes: it is
// read from peers' memory (call_log.h). Floor: engine/work. Thread: values.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/limits.h"
#include "csrc/plan/plan.h"
#include "csrc/reduce/types.h"

namespace rdmacoll {

struct CollectiveCall {
  uint64_t sequence = 0;  // of the group's collectives
  uint64_t bytes = 0;     // of all blocks that this rank has a part in
  uint16_t root : 15 = 0;
  uint16_t equal_blocks : 1 = 0;  // all ranks' blocks are of one size; no bool, see below
  uint16_t signature = 0;         // of what must be equal on all ranks
  Collective collective{};
  Algorithm algorithm{};
  DType dtype{};
  ReduceOp op{};
  int64_t started_ns = 0;  // time of day
};

static_assert(kMaxWorld <= 1 << 15);

struct MessageCall {
  uint64_t bytes = 0;
  int32_t peer = 0;  // the other end; -1: any
  int32_t tag = 0;
  int64_t started_ns = 0;
  uint8_t is_send = 0;  // 0 or 1, but no bool, which must not be read from any byte
};

// How errors name a rank.
inline std::string rank_name(uint32_t rank) { return "rank " + std::to_string(rank); }

// Whether its dtype and op mean something.
bool folds(Collective collective);

std::string describe(const CollectiveCall& call);
std::string describe(const MessageCall& call);
// How long ago that was, by the hosts' times of day; never less than nothing.
int64_t waited_ns(int64_t started_ns, int64_t now_ns);

}  // namespace rdmacoll
