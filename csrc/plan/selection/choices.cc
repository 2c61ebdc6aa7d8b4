// Choices: the table of defaults, and how it is made into one group's.
#include "csrc/plan/selection/choices.h"

#include <algorithm>

#include "csrc/base/check.h"
#include "csrc/plan/selection/select.h"

namespace rdmacoll {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kAny = kAnyBytes;

// The first row that fits is taken. A one-shot moves world times the bytes, hence the third bound;
// between two ranks that is no more than others move. Between two ranks direct moves no more than
// the others, too. It sends, folds and receives in lanes of their own, so that all slots are under
// way. A ring, or halving and doubling, has one message under way, which leaves a long line empty.
struct Choice {
  Collective collective;
  bool mapped;
  uint64_t max_bytes;
  uint64_t max_bytes_times_world;
  Algorithm algorithm;
  bool of_two = false;  // only in a world of two
};

constexpr Choice kChoices[] = {
    {Collective::AllReduce, true, 64 * kKiB, kAny, Algorithm::OneShot, true},
    {Collective::AllReduce, true, 16 * kKiB, 32 * kKiB, Algorithm::OneShot},
    {Collective::AllReduce, true, kAny, kAny, Algorithm::TwoShot},
    {Collective::AllReduce, false, 4 * kKiB, 16 * kKiB, Algorithm::OneShot},
    {Collective::AllReduce, false, kAny, kAny, Algorithm::Direct, true},
    {Collective::AllReduce, false, 512 * kKiB, kAny, Algorithm::HalvingDoubling},
    {Collective::AllReduce, false, kAny, kAny, Algorithm::Ring},
    {Collective::Broadcast, true, 4 * kKiB, 16 * kKiB, Algorithm::OneShot},
    {Collective::Broadcast, true, kAny, kAny, Algorithm::Direct},
    {Collective::Broadcast, false, 4 * kKiB, 16 * kKiB, Algorithm::OneShot},
    {Collective::Broadcast, false, kAny, kAny, Algorithm::Tree},
    {Collective::Reduce, true, 4 * kMiB, kAny, Algorithm::OneShot, true},
    {Collective::Reduce, true, 16 * kKiB, 64 * kKiB, Algorithm::OneShot},
    {Collective::Reduce, true, kAny, kAny, Algorithm::TwoShot},
    {Collective::Reduce, false, 4 * kKiB, 16 * kKiB, Algorithm::OneShot},
    {Collective::Reduce, false, kAny, kAny, Algorithm::Tree},
    {Collective::AllGather, true, kAny, kAny, Algorithm::Direct},
    {Collective::AllGather, false, kAny, kAny, Algorithm::Direct, true},
    {Collective::AllGather, false, 2 * kMiB, kAny, Algorithm::Direct},
    {Collective::AllGather, false, kAny, kAny, Algorithm::Ring},
    {Collective::ReduceScatter, true, 16 * kKiB, kAny, Algorithm::Direct},
    {Collective::ReduceScatter, true, kAny, kAny, Algorithm::TwoShot},
    {Collective::ReduceScatter, false, kAny, kAny, Algorithm::Direct, true},
    {Collective::ReduceScatter, false, 2 * kMiB, kAny, Algorithm::Direct},
    {Collective::ReduceScatter, false, kAny, kAny, Algorithm::Ring},
    {Collective::AllToAll, true, kAny, kAny, Algorithm::Direct},
    {Collective::AllToAll, false, kAny, kAny, Algorithm::Direct},
    {Collective::Gather, true, kAny, kAny, Algorithm::Direct},
    {Collective::Gather, false, kAny, kAny, Algorithm::Direct},
    {Collective::Scatter, true, kAny, kAny, Algorithm::Direct},
    {Collective::Scatter, false, kAny, kAny, Algorithm::Direct},
    {Collective::Barrier, true, kAny, kAny, Algorithm::Dissemination},
    {Collective::Barrier, false, kAny, kAny, Algorithm::Dissemination},
};

std::vector<TunedRow> defaults(Collective collective, uint32_t world, Reach reach) {
  std::vector<TunedRow> rows;
  for (const Choice& choice : kChoices) {
    if (choice.collective != collective || choice.mapped != reach.all_mapped ||
        !exists(collective, choice.algorithm, world, reach) || (choice.of_two && world != 2)) {
      continue;
    }
    const uint64_t most = choice.max_bytes_times_world;
    rows.push_back(
        {std::min(choice.max_bytes, most == kAny ? kAny : most / world), choice.algorithm});
  }
  return rows;
}

// Instead of one that folds in another order.
Algorithm in_rank_order(Collective collective, Reach reach) {
  if (reach.all_mapped) return Algorithm::TwoShot;
  return collective == Collective::Reduce ? Algorithm::OneShot : Algorithm::Direct;
}

}  // namespace

Choices::Choices(const Tuning& tuning, uint32_t world, Reach reach, Preference preference) {
  const auto& preferred = preference.algorithm;
  for (size_t index = 0; index < kCollectives; ++index) {
    const auto collective = static_cast<Collective>(index);
    auto& rows = rows_[index];
    if (preferred && exists(collective, *preferred, world, reach)) {
      rows = {{kAny, *preferred}};
    } else {
      rows = tuning.rows(collective, world, reach);
      if (rows.empty()) rows = defaults(collective, world, reach);
    }
    if (preference.in_rank_order && reduces(collective)) {
      for (TunedRow& row : rows) {
        if (!folds_in_rank_order(row.algorithm)) row.algorithm = in_rank_order(collective, reach);
      }
    }
    RDMACOLL_CHECK(!rows.empty() && rows.back().up_to_bytes == kAny);
  }
}

}  // namespace rdmacoll
