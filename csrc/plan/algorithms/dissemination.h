// Dissemination barrier (Hensgen, Finkel, Manber, "Two Algorithms for Barrier Synchronization",
// 1988): in round k every rank tells the one 2^k ahead that it, and all it has heard of, are here.
// Floor: plan/algorithms. ceil(log2 n) rounds of one message without data.
#pragma once

#include "csrc/plan/plan.h"

namespace rdmacoll {

Plan dissemination_barrier(uint16_t rank, uint16_t world);

}  // namespace rdmacoll
