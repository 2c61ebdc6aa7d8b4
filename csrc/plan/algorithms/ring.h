// Ring: every rank talks to its two neighbours only; the bandwidth-optimal all_reduce (Patarasuk,
// Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations", 2009).
// Floor: plan/algorithms.
//
// n ranks, S bytes in all; messages per tile and bytes sent by every rank
//   all_reduce                  2(n-1)   2(n-1)/n S
//   all_gather, reduce_scatter    n-1     (n-1)/n S
// A block's partial sum starts at one rank and grows by one contribution per hop, in the slots
// only: the input is never written. The last hop writes the result and passes it on in one step.
#pragma once

#include "csrc/plan/plan.h"

namespace rdmacoll {

Plan ring_all_reduce(uint16_t rank, uint16_t world);
Plan ring_all_gather(uint16_t rank, uint16_t world);
Plan ring_reduce_scatter(uint16_t rank, uint16_t world);

}  // namespace rdmacoll
