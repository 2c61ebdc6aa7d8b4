// Call: for people. Floor: engine/work.
#include "csrc/engine/work/call.h"

#include <algorithm>

namespace rdmacoll {
namespace {

bool has_root(Collective collective) {
  return collective == Collective::Broadcast || collective == Collective::Reduce ||
         collective == Collective::Gather || collective == Collective::Scatter;
}

}  // namespace

bool folds(Collective collective) {
  return collective == Collective::AllReduce || collective == Collective::Reduce ||
         collective == Collective::ReduceScatter;
}

std::string describe(const CollectiveCall& call) {
  std::string text = collective_name(call.collective);
  text += " #" + std::to_string(call.sequence) + " (" + std::to_string(call.bytes) + " bytes";
  if (call.equal_blocks != 0) text += " in equal blocks";
  if (folds(call.collective)) {
    text += std::string(", ") + dtype_name(call.dtype) + ", " + reduce_op_name(call.op);
  }
  if (has_root(call.collective)) text += ", root " + std::to_string(call.root);
  return text + ", " + algorithm_name(call.algorithm) + ")";
}

std::string describe(const MessageCall& call) {
  const std::string peer = call.peer < 0 ? "any rank" : "rank " + std::to_string(call.peer);
  return std::string(call.is_send != 0 ? "send" : "recv") + " of " + std::to_string(call.bytes) +
         " bytes " + (call.is_send != 0 ? "to " : "from ") + peer + " with tag " +
         std::to_string(call.tag);
}

int64_t waited_ns(int64_t started_ns, int64_t now_ns) {
  int64_t waited = 0;
  // A peer may have written anything.
  return __builtin_sub_overflow(now_ns, started_ns, &waited) ? 0 : std::max<int64_t>(waited, 0);
}

}  // namespace rdmacoll
