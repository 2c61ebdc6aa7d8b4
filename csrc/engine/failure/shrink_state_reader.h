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
  ShrinkStateReader(const Clock& clock, const Layout& layout, const Region& block,
                    const std::vector<Link>& links);

  // One at a time.
  void begin(ShrinkStateRead op);
  // Whether anything moved.
  bool advance(std::vector<Completion>& finished);
  // Ends it as it is.
  void end(const Status& status, std::vector<Completion>& finished);

 private:
  bool take(uint32_t place);

  const Clock& clock_;
  const uint32_t world_;
  PeerReads reads_;
  std::optional<ShrinkStateRead> op_;
  size_t asked_ = 0;  // of op_->ranks
  size_t taken_ = 0;  // of these
};

}  // namespace rdmacoll
