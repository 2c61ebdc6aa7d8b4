// Two-shot: each rank folds one block of everybody's input straight from the others' memory, then
// the results are collected. For large tensors on mapped peers; Rabenseifner's reduce-scatter and
// all-gather with loads in place of messages.
// Floor: plan/algorithms. All peers mapped.
//
// n ranks, S bytes; bytes written into shared memory and loaded from peers, by every rank
//   all_reduce       writes (n-1)/n S + S/n, loads 2(n-1)/n S; three lanes, so that tiles overlap
//   reduce           the same, but only the root collects
//   reduce_scatter   writes (n-1)/n S, loads (n-1)/n S
// Folds are in rank order. Results stay where peers cannot change them any more: a rank writes only
// its own memory.
#pragma once

#include "csrc/plan/plan.h"

namespace rdmacoll {

Plan two_shot_all_reduce(uint16_t rank, uint16_t world);
Plan two_shot_reduce(uint16_t rank, uint16_t world, uint16_t root);
Plan two_shot_reduce_scatter(uint16_t rank, uint16_t world);

}  // namespace rdmacoll
