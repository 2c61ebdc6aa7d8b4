// A world of one rank.
#include "csrc/plan/algorithms/alone.h"

#include "csrc/plan/builder.h"

namespace rdmacoll {

Plan alone(Collective collective, Algorithm algorithm) {
  const bool two_sided = collective == Collective::AllToAll;
  PlanBuilder plan(collective, algorithm, 0, 1, two_sided ? 2 : 1);
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Reduce:
    case Collective::ReduceScatter:
      plan.lane();
      plan.finish({input(block(0))}, {output(block(0))});
      break;
    case Collective::AllGather:
    case Collective::Gather:
    case Collective::Scatter:
      plan.lane();
      plan.copy(input(block(0)), {output(block(0))});
      break;
    case Collective::AllToAll:
      plan.lane();
      plan.copy(input(block(0)), {output(block(1))});
      break;
    case Collective::Broadcast:
    case Collective::Barrier:
      break;
  }
  return plan.take();
}

}  // namespace rdmacoll
