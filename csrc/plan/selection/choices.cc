// Choices: the table of defaults, and how it is made into one group's.
#include "csrc/plan/selection/choices.h"

#include <algorithm>

#include "csrc/base/check.h"

namespace rdmacoll {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kAny = kAnyBytes;

// The first row that fits is taken. A one-shot moves world times the bytes, hence the third bound;
// between two ranks that is no more than others move. Between two ranks direct moves no more than
// the others, too. It sends, folds and receives in lanes of their own, so that all slots are under
// way. A ring, or halving and doubling, has one message under way, which leaves a long line empty.
enum class Where : uint8_t { Mapped, Apart, Levels };

struct Choice {
  Collective collective;
  Where where;
  uint64_t max_bytes;
  uint64_t max_bytes_times_world;
  Algorithm algorithm;
  bool of_two = false;  // only in a world of two
};

constexpr Choice kChoices[] = {
    {Collective::AllReduce, Where::Mapped, 64 * kKiB, kAny, Algorithm::OneShot, true},
    {Collective::AllReduce, Where::Mapped, 16 * kKiB, 32 * kKiB, Algorithm::OneShot},
    {Collective::AllReduce, Where::Mapped, kAny, kAny, Algorithm::TwoShot},
    {Collective::AllReduce, Where::Apart, 4 * kKiB, 16 * kKiB, Algorithm::OneShot},
    {Collective::AllReduce, Where::Apart, kAny, kAny, Algorithm::Direct, true},
    {Collective::AllReduce, Where::Apart, 512 * kKiB, kAny, Algorithm::HalvingDoubling},
    {Collective::AllReduce, Where::Apart, kAny, kAny, Algorithm::Ring},
    {Collective::Broadcast, Where::Mapped, 4 * kKiB, 16 * kKiB, Algorithm::OneShot},
    {Collective::Broadcast, Where::Mapped, kAny, kAny, Algorithm::Direct},
    {Collective::Broadcast, Where::Apart, 4 * kKiB, 16 * kKiB, Algorithm::OneShot},
    {Collective::Broadcast, Where::Apart, kAny, kAny, Algorithm::Tree},
    {Collective::Reduce, Where::Mapped, 4 * kMiB, kAny, Algorithm::OneShot, true},
    {Collective::Reduce, Where::Mapped, 16 * kKiB, 64 * kKiB, Algorithm::OneShot},
    {Collective::Reduce, Where::Mapped, kAny, kAny, Algorithm::TwoShot},
    {Collective::Reduce, Where::Apart, 4 * kKiB, 16 * kKiB, Algorithm::OneShot},
    {Collective::Reduce, Where::Apart, kAny, kAny, Algorithm::Tree},
    {Collective::AllGather, Where::Mapped, kAny, kAny, Algorithm::Direct},
    {Collective::AllGather, Where::Apart, kAny, kAny, Algorithm::Direct, true},
    {Collective::AllGather, Where::Apart, 2 * kMiB, kAny, Algorithm::Direct},
    {Collective::AllGather, Where::Apart, kAny, kAny, Algorithm::Ring},
    {Collective::ReduceScatter, Where::Mapped, 16 * kKiB, kAny, Algorithm::Direct},
    {Collective::ReduceScatter, Where::Mapped, kAny, kAny, Algorithm::TwoShot},
    {Collective::ReduceScatter, Where::Apart, kAny, kAny, Algorithm::Direct, true},
    {Collective::ReduceScatter, Where::Apart, 2 * kMiB, kAny, Algorithm::Direct},
    {Collective::ReduceScatter, Where::Apart, kAny, kAny, Algorithm::Ring},
    {Collective::AllToAll, Where::Mapped, kAny, kAny, Algorithm::Direct},
    {Collective::AllToAll, Where::Apart, kAny, kAny, Algorithm::Direct},
    {Collective::Gather, Where::Mapped, kAny, kAny, Algorithm::Direct},
    {Collective::Gather, Where::Apart, kAny, kAny, Algorithm::Direct},
    {Collective::Scatter, Where::Mapped, kAny, kAny, Algorithm::Direct},
    {Collective::Scatter, Where::Apart, kAny, kAny, Algorithm::Direct},
    {Collective::Barrier, Where::Mapped, kAny, kAny, Algorithm::Dissemination},
    {Collective::Barrier, Where::Apart, kAny, kAny, Algorithm::Dissemination},
    {Collective::AllReduce, Where::Levels, 256 * kKiB, kAny, Algorithm::Leaders},
    {Collective::AllReduce, Where::Levels, kAny, kAny, Algorithm::Rails},
    {Collective::Broadcast, Where::Levels, 64 * kKiB, kAny, Algorithm::Leaders},
    {Collective::Broadcast, Where::Levels, kAny, kAny, Algorithm::Rails},
    {Collective::Reduce, Where::Levels, 64 * kKiB, kAny, Algorithm::Leaders},
    {Collective::Reduce, Where::Levels, kAny, kAny, Algorithm::Rails},
    {Collective::AllGather, Where::Levels, kAny, kAny, Algorithm::Rails},
    {Collective::ReduceScatter, Where::Levels, kAny, kAny, Algorithm::Rails},
    {Collective::AllToAll, Where::Levels, kAny, kAny, Algorithm::Direct},
    {Collective::Gather, Where::Levels, kAny, kAny, Algorithm::Direct},
    {Collective::Scatter, Where::Levels, kAny, kAny, Algorithm::Direct},
    {Collective::Barrier, Where::Levels, kAny, kAny, Algorithm::Leaders},
};

Where where(const Islands& islands) {
  if (islands.has_levels()) return Where::Levels;
  return islands.all_mapped() ? Where::Mapped : Where::Apart;
}

std::vector<TunedRow> defaults(Collective collective, const Islands& islands) {
  const uint32_t world = islands.world();
  std::vector<TunedRow> rows;
  for (const Choice& choice : kChoices) {
    if (choice.collective != collective || choice.where != where(islands) ||
        !exists(collective, choice.algorithm, islands) || (choice.of_two && world != 2)) {
      continue;
    }
    const uint64_t most = choice.max_bytes_times_world;
    rows.push_back(
        {std::min(choice.max_bytes, most == kAny ? kAny : most / world), choice.algorithm});
  }
  return rows;
}

// Instead of one that folds in another order. What folds by layout: rails alone, so that not even
// the size matters.
Algorithm in_order(Collective collective, const Islands& islands, FoldOrder at_least) {
  if (at_least == FoldOrder::Layout && islands.has_levels()) return Algorithm::Rails;
  if (islands.all_mapped()) return Algorithm::TwoShot;
  return collective == Collective::Reduce ? Algorithm::OneShot : Algorithm::Direct;
}

bool keeps_order(Algorithm algorithm, FoldOrder at_least) {
  switch (at_least) {
    case FoldOrder::Position:
      return true;
    case FoldOrder::Layout:
      return algorithm == Algorithm::Rails || fold_order(algorithm) == FoldOrder::Ranks;
    case FoldOrder::Ranks:
      return fold_order(algorithm) == FoldOrder::Ranks;
  }
  return false;
}

}  // namespace

Choices::Choices(const Tuning& tuning, const Islands& islands, Preference preference) {
  const auto& preferred = preference.algorithm;
  for (size_t index = 0; index < kCollectives; ++index) {
    const auto collective = static_cast<Collective>(index);
    auto& rows = rows_[index];
    if (preferred && exists(collective, *preferred, islands)) {
      rows = {{kAny, *preferred}};
    } else {
      rows = tuning.rows(collective, islands);
      if (rows.empty()) rows = defaults(collective, islands);
    }
    for (TunedRow& row : rows) {
      if (reduces(collective) && !keeps_order(row.algorithm, preference.at_least)) {
        row.algorithm = in_order(collective, islands, preference.at_least);
      }
    }
    RDMACOLL_CHECK(!rows.empty() && rows.back().up_to_bytes == kAny);
  }
}

}  // namespace rdmacoll
