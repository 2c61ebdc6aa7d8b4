// One-shot: every rank that needs a contribution gets it in one message, then folds alone. The
// latency path. All ranks fold in rank order, so that they hold the same bits.
// Floor: plan/algorithms.
//
// n ranks, S bytes; one message deep. Bytes sent
//   all_reduce   every rank (n-1) S
//   reduce       every rank but the root S
//   broadcast    the root (n-1) S
#pragma once

#include "csrc/plan/plan.h"

namespace rdmacoll {

Plan one_shot_all_reduce(uint16_t rank, uint16_t world);
Plan one_shot_reduce(uint16_t rank, uint16_t world, uint16_t root);
Plan one_shot_broadcast(uint16_t rank, uint16_t world, uint16_t root);

}  // namespace rdmacoll
