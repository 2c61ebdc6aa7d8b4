// PaceSteps: how many workers of a table with a pace there are, how far each of them has come at a
// shard, and what of the steps that are not whole has come. If there are to be more or fewer, that
// is another generation of them, and who is of an earlier one has no part in it. Floor: ps/table.
// Thread: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
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

// What a worker pushes in a step.
struct StepGradient {
  std::span<const float> values{};
  Rates rates{};
  bool stays = false;                   // until the worker is told that the push is done
  std::shared_ptr<const void> keeps{};  // what the values are in
};

class PaceSteps {
 public:
  struct Gradient {
    StepGradient it{};
    std::vector<float> copy{};  // of one that does not stay
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
  void keep(WorkerStep step, const StepGradient& gradient) {
    Gradient& kept = gathered_[{step.number, step.rank}];
    kept.it = gradient;
    if (!gradient.stays) copy(kept);
  }
  // Copies those that are kept where workers have them.
  void own() {
    for (auto& [step, gradient] : gathered_) {
      if (gradient.it.stays) copy(gradient);
    }
  }
  // Whether it is kept where the worker has it.
  bool borrows(WorkerStep step) const {
    const auto found = gathered_.find({step.number, step.rank});
    return is_of_it(step) && found != gathered_.end() && found->second.it.stays;
  }
  // Where the gradients of all are, by ranks; `last` is of the one that was not kept.
  std::vector<const void*> sources(WorkerStep last, std::span<const float> gradient) const {
    std::vector<const void*> all(reached_.size(), gradient.data());
    for (auto at = gathered_.lower_bound({last.number, 0}); at != end_of(last.number); ++at) {
      all[at->first.second] = at->second.it.values.data();
    }
    return all;
  }
  // Those of rank 0 count for all; `of_last` are those of the one that was not kept.
  Rates rates(WorkerStep last, const Rates& of_last) const {
    return last.rank == 0 ? of_last : gathered_.at({last.number, 0}).it.rates;
  }
  void forget(uint32_t step) {
    const auto first = gathered_.lower_bound({step, 0});
    const auto end = gathered_.upper_bound({step, UINT32_MAX});
    for (auto at = first; at != end; ++at) {
      if (!at->second.it.stays) spare_.push_back(std::move(at->second.copy));
    }
    gathered_.erase(first, end);
  }

 private:
  void copy(Gradient& gradient);
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
  std::vector<std::vector<float>> spare_;
};

}  // namespace rdmacoll::ps
