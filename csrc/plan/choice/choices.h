// Choices: which algorithm an operation takes: the defaults, a forecast, or what a tuned table
// says. A function of values that are equal on all ranks of a group, so that all choose alike.
// Floor: plan/choice. Thread: a value, immutable once built.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "csrc/plan/choice/tuning.h"
#include "csrc/plan/cost/forecast.h"
#include "csrc/plan/plan.h"
#include "csrc/plan/selection/select.h"

namespace rdmacoll {

// What a group wants of its algorithms, whatever the tables say.
struct Preference {
  std::optional<Algorithm> algorithm;        // taken wherever it exists
  FoldOrder at_least = FoldOrder::Position;  // of reductions only what folds so, or by ranks
};

// Of one group: its ranks and islands are fixed, so only collective and bytes are left to look at.
class Choices {
 public:
  // room: what the group's messages hold; equal on all ranks, too.
  Choices(const Tuning& tuning, const Islands& islands, const Room& room, Preference preference);

  // bytes: of the whole buffer for all_reduce, reduce and broadcast, of all blocks together for
  // all_gather and reduce_scatter; the other collectives do not look at it, since their ranks do
  // not know the same sizes.
  Algorithm choose(Collective collective, uint64_t bytes) const {
    const auto& rows = rows_[static_cast<size_t>(collective)];
    size_t row = 0;
    while (bytes > rows[row].up_to_bytes) ++row;  // the last is up to any
    return rows[row].algorithm;
  }

 private:
  std::array<std::vector<TunedRow>, kCollectives> rows_;
};

}  // namespace rdmacoll
