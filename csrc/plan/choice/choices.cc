// Choices: the table of defaults for plans of one level, forecasts for those of two, and how they
// are made into one group's.
#include "csrc/plan/choice/choices.h"

#include <algorithm>
#include <memory>

#include "csrc/base/check.h"
#include "csrc/plan/cost/forecast.h"

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

// Of one level.
std::vector<TunedRow> defaults(Collective collective, const Islands& islands) {
  const uint32_t world = islands.world();
  std::vector<TunedRow> rows;
  for (const Choice& choice : kChoices) {
    if (choice.collective != collective || choice.mapped != islands.all_mapped() ||
        !exists(collective, choice.algorithm, islands) || (choice.of_two && world != 2)) {
      continue;
    }
    const uint64_t most = choice.max_bytes_times_world;
    rows.push_back(
        {std::min(choice.max_bytes, most == kAny ? kAny : most / world), choice.algorithm});
  }
  return rows;
}

// Of two levels: what is forecast to be the quickest. Sizes between two of these are as good as
// their neighbours.
constexpr uint64_t kLeastBytes = 256;
constexpr uint64_t kMostBytes = 256 * kMiB;
// The choice does not depend on the root. Rank 0 is the best one of a tree, whose subtrees then are
// whole hosts; this one is as good as most.
constexpr uint16_t kSomeRoot = 1;
// What is forecast to take a twentieth longer is as quick, as far as a forecast knows. Then rails
// are taken: all ranks of a host send alike, and every size of a reduction has the same bits. Where
// there are none it is direct: what is placed, or sent without a copy, is not in the forecast.
constexpr int64_t kAlike = 20;

std::vector<TunedRow> forecast(Collective collective, const Islands& islands, const Room& room,
                               const Links& links) {
  const std::vector<Algorithm> algorithms = algorithms_of(collective, islands);
  if (algorithms.size() == 1) return {{kAny, algorithms.front()}};
  std::vector<Forecast> forecasts;
  for (Algorithm algorithm : algorithms) {
    forecasts.emplace_back(collective, algorithm, islands, kSomeRoot);
  }
  const bool has_rails = exists(collective, Algorithm::Rails, islands);
  const auto preferred = std::find(algorithms.begin(), algorithms.end(),
                                   has_rails ? Algorithm::Rails : Algorithm::Direct);
  const auto best = [&](uint64_t bytes) {
    std::vector<int64_t> times_ns;
    for (const Forecast& each : forecasts) times_ns.push_back(each.time_ns(bytes, room, links));
    const auto least = std::min_element(times_ns.begin(), times_ns.end());
    if (preferred != algorithms.end() &&
        times_ns[static_cast<size_t>(preferred - algorithms.begin())] <= *least + *least / kAlike) {
      return *preferred;
    }
    return algorithms[static_cast<size_t>(least - times_ns.begin())];
  };
  std::vector<TunedRow> rows;
  for (uint64_t bytes = kLeastBytes; bytes <= kMostBytes; bytes *= 2) {
    const Algorithm algorithm = best(bytes);
    if (!rows.empty() && rows.back().algorithm == algorithm) rows.pop_back();
    rows.push_back({bytes, algorithm});
  }
  rows.back().up_to_bytes = kAny;
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

const std::vector<TunedRow>& Choices::work_out(Collective collective) const {
  const auto index = static_cast<size_t>(collective);
  const std::lock_guard lock(mutex_);
  if (rows_.at(index) == nullptr) {
    rows_.set(index, std::make_unique<std::vector<TunedRow>>(rows_of(collective)));
  }
  return *rows_.at(index);
}

std::vector<TunedRow> Choices::rows_of(Collective collective) const {
  const auto& preferred = preference_.algorithm;
  std::vector<TunedRow> rows;
  if (preferred && exists(collective, *preferred, islands_)) {
    rows = {{kAny, *preferred}};
  } else {
    rows = tuning_.rows(collective, islands_);
    if (rows.empty()) {
      rows = islands_.has_levels() ? forecast(collective, islands_, room_, tuning_.links())
                                   : defaults(collective, islands_);
    }
  }
  for (TunedRow& row : rows) {
    if (reduces(collective) && !keeps_order(row.algorithm, preference_.at_least)) {
      row.algorithm = in_order(collective, islands_, preference_.at_least);
    }
  }
  RDMACOLL_CHECK(!rows.empty() && rows.back().up_to_bytes == kAny);
  return rows;
}

}  // namespace rdmacoll
