// ShrinkState: what a rank says while a group is shrunk (shrinking.h), kept in its block where the
// others read it one-sidedly. It comes from outside, so reading trusts nothing.
// Floor: engine/failure. Thread: values; publishing and reading may overlap, on any ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/engine/channel/layout.h"

namespace rdmacoll {

using RankSet = std::vector<bool>;  // by rank

// How far a rank is with the group of those that it does not exclude. Each is said when all of them
// have said the one before.
enum class ShrinkStage : uint32_t {
  Agreeing = 1,  // whom it excludes
  Ready,         // its new block is there; the record follows
  Offered,       // it has met all and offered them the block
  Made,          // it holds the new group, and keeps it until one is decided
  Decided,       // it has seen that all hold it: this one it is, for good
  Declined,      // it could not take part
};

struct ShrinkState {
  uint32_t rank = 0;
  ShrinkStage stage = ShrinkStage::Agreeing;
  RankSet excluded{};    // of the old group, all its ranks
  std::string record{};  // GroupRecord, from Ready on

  // Into this rank's block: shrink_state_bytes() of the group, a line's alignment. InvalidArgument:
  // it is too long.
  Status publish(std::byte* area) const;
  // What the rank of a group of `world` said, from a copy of its area; nullopt: nothing yet, or the
  // copy was made while it changed.
  static std::optional<ShrinkState> read(const std::byte* copy, uint32_t rank, uint32_t world);
};

}  // namespace rdmacoll
