// Dissemination barrier: tokens on channel 0.
#include "csrc/plan/algorithms/dissemination.h"

#include "csrc/plan/builder.h"

namespace rdmacoll {

Plan dissemination_barrier(uint16_t rank, uint16_t world) {
  PlanBuilder plan(Collective::Barrier, Algorithm::Dissemination, rank, world, 1);
  plan.lane();
  for (int distance = 1; distance < world; distance *= 2) {
    const uint16_t ahead = around(rank, distance, world);
    const uint16_t behind = around(rank, -distance, world);
    plan.wait(Counter::Credit, ahead, 0, kToken);
    plan.signal(Counter::Data, ahead, 0, kToken);
    plan.wait(Counter::Data, behind, 0, kToken);
    plan.signal(Counter::Credit, behind, 0, kToken);
  }
  return plan.take();
}

}  // namespace rdmacoll
