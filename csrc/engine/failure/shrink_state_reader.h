// ShrinkStateReader: reads what other ranks of a group say (shrink_state.h), one-sidedly, also of a
// group that has failed. Nobody has to answer. Floor: engine/failure. Thread: the driver.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/engine/failure/peer_reads.h"
#include "csrc/engine/failure/shrink_state.h"
#include "csrc/engine/work/work.h"

namespace rdmacoll {

// `found`, by rank, belongs to the driver until the work is done: nullopt for who said nothing, or
// could not be read by the deadline.
struct ShrinkStateRead {
  WorkPtr work;
  std::vector<uint32_t> ranks;
  std::vector<std::optional<ShrinkState>>* found = nullptr;
  int64_t deadline_ns = 0;
};

class ShrinkStateReader {
 public:
  ShrinkStateReader(const Clock& clock, PeerLinks& links);

  // One at a time.
  void begin(ShrinkStateRead op);
  // Whether anything moved.
  bool advance(std::vector<Completion>& finished);
  // Ends it as it is.
  void end(const Status& status, std::vector<Completion>& finished);

 private:
  bool ask(uint32_t place);
  bool take(uint32_t place);
  void forget_unreachable();

  const Clock& clock_;
  PeerLinks& links_;
  PeerReads reads_;
  std::optional<ShrinkStateRead> op_;
  std::vector<uint32_t> unasked_;
  size_t awaited_ = 0;  // asked, and their words are not here
};

}  // namespace rdmacoll
