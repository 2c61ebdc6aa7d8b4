// Choices: which algorithm an operation takes: the defaults, a forecast, or what a tuned table
// says. A function of values that are equal on all ranks of a group, so that all choose alike.
// Floor: plan/choice. Thread: any.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
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
// What a collective takes is worked out at its first operation: a forecast of thousands of ranks
// costs milliseconds.
class Choices {
 public:
  // room: what the group's messages hold; equal on all ranks, too.
  Choices(Tuning tuning, Islands islands, const Room& room, Preference preference)
      : tuning_(std::move(tuning)),
        islands_(std::move(islands)),
        room_(room),
        preference_(preference) {}

  // bytes: of the whole buffer for all_reduce, reduce and broadcast, of all blocks together for
  // all_gather and reduce_scatter; the other collectives do not look at it, since their ranks do
  // not know the same sizes.
  Algorithm choose(Collective collective, uint64_t bytes) const {
    auto& [once, rows] = taken_[static_cast<size_t>(collective)];
    std::call_once(once, [&, &taken = rows] { taken = rows_of(collective); });
    size_t row = 0;
    while (bytes > rows[row].up_to_bytes) ++row;  // the last is up to any
    return rows[row].algorithm;
  }

 private:
  struct Taken {
    std::once_flag once;
    std::vector<TunedRow> rows;
  };
  std::vector<TunedRow> rows_of(Collective collective) const;

  const Tuning tuning_;
  const Islands islands_;
  const Room room_;
  const Preference preference_;
  mutable std::array<Taken, kCollectives> taken_;
};

}  // namespace rdmacoll
