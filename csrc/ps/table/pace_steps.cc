// PaceSteps: its generations. Floor: ps/table. Thread: one at a time.
#include "csrc/ps/table/pace_steps.h"

namespace rdmacoll::ps {

void PaceSteps::begin(Generation generation, uint32_t step) {
  if (generation.number <= generation_) return;
  generation_ = generation.number;
  reached_.assign(generation.workers, step);
  gathered_.clear();
}

bool PaceSteps::is_of_it(WorkerStep step) const {
  return step.generation == generation_ && step.rank < reached_.size();
}

}  // namespace rdmacoll::ps
