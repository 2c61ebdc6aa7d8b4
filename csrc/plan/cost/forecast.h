// Forecast: what an algorithm moves in a layout, and how long it will take. What it moves is
// counted in the plans themselves; how many latencies follow each other is a formula
// (selection/chains.h). Floor: plan/cost. Thread: a value, immutable once built.
//
// After LogGP (Alexandrov, Ionescu, Schauser, Scheiman, 1995): a chain of latencies, then the
// busiest rank's or host's work. What the ranks do and what the network does overlap, but for the
// first message of the first tile: while one travels the ranks work on others.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/plan/cost/even_tiling.h"
#include "csrc/plan/cost/links.h"
#include "csrc/plan/islands.h"
#include "csrc/plan/plan.h"
#include "csrc/plan/selection/chains.h"

namespace rdmacoll {

// Of one rank, for Forecast::kCountedBytes in one tile.
struct Moved {
  uint64_t network_messages = 0;  // out and in
  uint64_t memory_messages = 0;   // the same inside the island
  uint64_t out_bytes = 0;         // to other islands
  uint64_t in_bytes = 0;
  uint64_t memory_bytes = 0;  // loaded and stored by copies and folds
};

class Forecast {
 public:
  static constexpr uint64_t kCountedBytes = 1 << 20;

  Forecast(Collective collective, Algorithm algorithm, const Islands& islands, uint16_t root);

  // bytes: as in Choices::choose().
  int64_t time_ns(uint64_t bytes, const Room& room, const Links& links) const;
  // Out of the island that sends most, into the one that takes most.
  uint64_t out_bytes(uint64_t bytes) const { return scaled(most_out_, bytes); }
  uint64_t in_bytes(uint64_t bytes) const { return scaled(most_in_, bytes); }
  const Chain& chain() const { return chain_; }
  uint64_t tiles(uint64_t bytes, const Room& room) const;

 private:
  static uint64_t scaled(uint64_t counted, uint64_t bytes) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(counted) * bytes / kCountedBytes);
  }
  int64_t work_ns(const Moved& moved, uint64_t bytes, uint64_t tiles, const Links& links) const;

  Plan first_;  // of rank 0: how tiles are cut
  Chain chain_;
  std::vector<Moved> ranks_;  // of the islands that were counted
  uint64_t most_out_ = 0;     // of an island
  uint64_t most_in_ = 0;
};

}  // namespace rdmacoll
