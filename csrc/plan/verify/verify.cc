// verify(): each plan by itself first, then the world.
#include "csrc/plan/verify/verify.h"

#include "csrc/base/check.h"
#include "csrc/plan/verify/shape.h"
#include "csrc/plan/verify/world.h"

namespace rdmacoll {

std::string verify(const std::vector<WorldPlan>& operations, const Bounds& bounds) {
  for (const WorldPlan& operation : operations) {
    RDMACOLL_CHECK(operation.plans.size() == operations.front().plans.size());
    RDMACOLL_CHECK(operation.islands == operations.front().islands);
    RDMACOLL_CHECK(!operation.plans.empty() && operation.plans.size() <= kMaxVerifiedWorld);
    for (const Plan& plan : operation.plans) {
      const std::string why = malformed(plan, operation.islands);
      if (!why.empty()) return "rank " + std::to_string(plan.rank) + ", " + why;
      const Plan& first = operation.plans.front();
      if (plan.blocks != first.blocks || plan.slot_blocks != first.slot_blocks ||
          plan.stage_blocks != first.stage_blocks) {
        return "rank " + std::to_string(plan.rank) + " cuts tiles otherwise than rank 0";
      }
      if (plan.block_ranks != first.block_ranks) {
        return "rank " + std::to_string(plan.rank) + " numbers blocks otherwise than rank 0";
      }
    }
  }
  return SymbolicWorld(operations, bounds).run();
}

}  // namespace rdmacoll
