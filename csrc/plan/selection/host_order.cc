// Host order: renaming. Floor: plan/selection.
#include "csrc/plan/selection/host_order.h"

namespace rdmacoll {

void rename_positions(Plan* plan, const Islands& islands) {
  plan->rank = islands.at_position(plan->rank);
  for (Step& step : plan->steps) step.peer = islands.at_position(step.peer);
  for (Operand& operand : plan->operands) operand.rank = islands.at_position(operand.rank);
  if (is_contiguous(plan->collective)) return;
  for (uint32_t block = 0; block < plan->blocks; ++block) {
    plan->block_ranks.push_back(islands.at_position(block));
  }
}

}  // namespace rdmacoll
