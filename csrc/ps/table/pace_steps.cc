// PaceSteps. Floor: ps/table. Thread: one at a time.
#include "csrc/ps/table/pace_steps.h"

namespace rdmacoll::ps {

void PaceSteps::begin(Generation generation, uint32_t step) {
  if (generation.number <= generation_) return;
  generation_ = generation.number;
  reached_.assign(generation.workers, step);
  gathered_.clear();
}

void PaceSteps::copy(Gradient& gradient) {
  if (!spare_.empty()) {
    gradient.copy = std::move(spare_.back());
    spare_.pop_back();
  }
  gradient.copy.assign(gradient.it.values.begin(), gradient.it.values.end());
  gradient.it = {gradient.copy, gradient.it.rates};
}

bool PaceSteps::is_of_it(WorkerStep step) const {
  return step.generation == generation_ && step.rank < reached_.size();
}

}  // namespace rdmacoll::ps
