// PaceSteps: how many workers of a table with a pace there are, how far each of them has come at a
// shard, and what of the steps that are not whole has come. If there are to be more or fewer, that
// is another generation of them, and who is of an earlier one has no part in it. Floor: ps/table.
// Thread: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "csrc/reduce/optimizer.h"

namespace rdmacoll::ps {

// A worker's step: its first one has number 1; 0: of a push to a table without a pace.
struct WorkerStep {
  uint32_t rank = 0;
  uint32_t number = 0;
  uint32_t generation = 0;
};

// Of a rank that is none of them, in the place of its step.
inline constexpr uint32_t kNoWorker = UINT32_MAX;

// So many workers that go in step.
struct Generation {
  uint32_t number = 0;  // the first one is 1
  uint32_t workers = 0;
};

class PaceSteps {
 public:
  struct Gradient {
    Rates rates{};
    std::vector<float> floats{};
  };
  using Gathered = std::map<std::pair<uint32_t, uint32_t>, Gradient>;  // by step and rank

  // Its number; 0: none has begun.
  uint32_t generation() const { return generation_; }
  // The step that each worker has pushed last, by ranks.
  const std::vector<uint32_t>& reached() const { return reached_; }
  // The last step that all have pushed.
  uint32_t slowest() const { return reached_.empty() ? 0 : *std::ranges::min_element(reached_); }
  // What of steps is not whole is forgotten. step: that all have made. Does nothing where a later
  // generation has begun.
  void begin(Generation generation, uint32_t step);
  bool is_of_it(WorkerStep step) const;
  // False: the worker has pushed it before. A worker that was started again may do so once more.
  bool note(WorkerStep step) {
    if (step.number <= reached_[step.rank]) return false;
    reached_[step.rank] = step.number;
    return true;
  }
  void load(uint32_t generation, std::vector<uint32_t> reached) {
    generation_ = generation;
    reached_ = std::move(reached);
    gathered_.clear();
  }

  // --- of a bulk-synchronous table
  const Gathered& gathered() const { return gathered_; }
  // Whether all others have pushed it.
  bool is_last(uint32_t step) const {
    return count(step) + 1 == static_cast<ptrdiff_t>(reached_.size());
  }
  void keep(WorkerStep step, std::span<const float> gradient, const Rates& rates) {
    Gradient kept;
    if (!spare_.empty()) {
      kept = std::move(spare_.back());
      spare_.pop_back();
    }
    kept.rates = rates;
    kept.floats.assign(gradient.begin(), gradient.end());
    gathered_.emplace(std::pair(step.number, step.rank), std::move(kept));
  }
  // Where the gradients of all are, by ranks; `last` is of the one that was not kept.
  std::vector<const void*> sources(WorkerStep last, std::span<const float> gradient) const {
    std::vector<const void*> all(reached_.size(), gradient.data());
    for (auto at = gathered_.lower_bound({last.number, 0}); at != end_of(last.number); ++at) {
      all[at->first.second] = at->second.floats.data();
    }
    return all;
  }
  // Those of rank 0 count for all; `of_last` are those of the one that was not kept.
  Rates rates(WorkerStep last, const Rates& of_last) const {
    return last.rank == 0 ? of_last : gathered_.at({last.number, 0}).rates;
  }
  void forget(uint32_t step) {
    const auto first = gathered_.lower_bound({step, 0});
    const auto end = gathered_.upper_bound({step, UINT32_MAX});
    for (auto at = first; at != end; ++at) spare_.push_back(std::move(at->second));
    gathered_.erase(first, end);
  }

 private:
  Gathered::const_iterator end_of(uint32_t step) const {
    return gathered_.upper_bound({step, UINT32_MAX});
  }
  ptrdiff_t count(uint32_t step) const {
    return std::distance(gathered_.lower_bound({step, 0}), end_of(step));
  }

  uint32_t generation_ = 0;
  std::vector<uint32_t> reached_;
  Gathered gathered_;
  // Of steps before: new pages for each step took as long as the copies into them.
  std::vector<Gradient> spare_;
};

}  // namespace rdmacoll::ps
