// Choices: which algorithm an operation takes: the defaults, a forecast, or what a tuned table
// says. A function of values that are equal on all ranks of a group, so that all choose alike.
// Floor: plan/choice. Thread: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "csrc/base/published.h"
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
  // The table and the islands outlive this. room: what the group's messages hold; equal on all
  // ranks, too.
  Choices(const Tuning& tuning, const Islands& islands, const Room& room, Preference preference)
      : tuning_(tuning), islands_(islands), room_(room), preference_(preference) {}

  // bytes: of the whole buffer for all_reduce, reduce and broadcast, of one rank's blocks for
  // all_to_all, of all blocks together for the others. Whose ranks know different sizes (of
  // all_to_all, gather and scatter) do not ask: they take kOfAnySizes (plan.h).
  Algorithm choose(Collective collective, uint64_t bytes) const {
    const std::vector<TunedRow>* rows = rows_.at(static_cast<size_t>(collective));
    if (rows == nullptr) [[unlikely]]
      rows = &work_out(collective);
    const TunedRow* row = rows->data();
    while (bytes > row->up_to_bytes) ++row;  // the last is up to any
    return row->algorithm;
  }

 private:
  const std::vector<TunedRow>& work_out(Collective collective) const;
  std::vector<TunedRow> rows_of(Collective collective) const;

  const Tuning& tuning_;
  const Islands& islands_;
  const Room room_;
  const Preference preference_;
  mutable std::mutex mutex_;  // who works out
  mutable Published<std::vector<TunedRow>, kCollectives> rows_;
};

}  // namespace rdmacoll
