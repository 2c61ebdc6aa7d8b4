// Host order: renaming. Floor: plan/selection.
#include "csrc/plan/selection/host_order.h"

#include "csrc/base/check.h"

namespace rdmacoll {

void rename_positions(Plan* plan, const Islands& islands) {
  const bool of_ranks = !is_contiguous(plan->collective);
  const auto rename = [&](BlockRange& blocks) {
    if (!of_ranks || blocks.count == 0) return;
    RDMACOLL_CHECK(blocks.count == 1);  // others are not in a row any more
    blocks.first = islands.at_position(blocks.first);
  };
  plan->rank = islands.at_position(plan->rank);
  for (Step& step : plan->steps) {
    step.peer = islands.at_position(step.peer);
    rename(step.blocks);
  }
  for (Operand& operand : plan->operands) {
    operand.rank = islands.at_position(operand.rank);
    rename(operand.blocks);
  }
}

}  // namespace rdmacoll
