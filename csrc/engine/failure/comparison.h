// Comparison: finds a peer that has called another collective although nobody sends. Messages say
// which operation they are of, so a mismatch is seen when one comes. But ranks that all wait for
// each other send none: two that take each other for the root of a broadcast, for example. So a
// rank that has waited for a while reads what the others have called (call_log_reader.h), now and
// then. Floor: engine/failure. Thread: the driver.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "csrc/engine/failure/call_log_reader.h"
#include "csrc/engine/work/call.h"

namespace rdmacoll {

class Comparison {
 public:
  Comparison(CallLogReader& call_logs, uint32_t world) : call_logs_(call_logs), world_(world) {
    asked_.reserve(world);  // an operation that waits allocates no more than another
  }

  // To be called now and then while `mine` waits. A peer that has called another collective, among
  // those for which waits_for() is true when they are asked; nullopt: none is known.
  std::optional<uint32_t> look(const CollectiveCall& mine, int64_t started_ns, int64_t now_ns,
                               const std::function<bool(uint32_t)>& waits_for);

 private:
  void ask(int64_t now_ns, const std::function<bool(uint32_t)>& waits_for);

  CallLogReader& call_logs_;
  const uint32_t world_;
  std::vector<uint32_t> asked_;  // the last time
  uint64_t asked_about_ = 0;     // a sequence number; 0: nothing
  int64_t asked_ns_ = 0;
};

}  // namespace rdmacoll
