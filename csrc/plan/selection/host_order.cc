// Host order: renaming. Floor: plan/selection.
#include "csrc/plan/selection/host_order.h"

namespace rdmacoll {

void rename_positions(Plan* plan, const Islands& islands) {
  const std::vector<uint16_t>& rank_at = islands.host_order();
  plan->rank = rank_at[plan->rank];
  for (Step& step : plan->steps) step.peer = rank_at[step.peer];
  for (uint16_t& peer : plan->peers) peer = rank_at[peer];
  for (Operand& operand : plan->operands) operand.rank = rank_at[operand.rank];
  if (!is_contiguous(plan->collective)) plan->block_ranks = rank_at;
}

}  // namespace rdmacoll
