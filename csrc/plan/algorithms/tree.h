// Tree: binomial, rooted anywhere. Tiles follow each other down the tree, so that large tensors
// cost bandwidth, not depth. Floor: plan/algorithms.
//
// n ranks, S bytes; depth ceil(log2 n). Bytes sent
//   reduce       every rank but the root S
//   broadcast    S per child, at most ceil(log2 n) S
//   all_reduce   both, rooted at rank 0
// A rank folds its own input first and then its children's sums, in rank order from the root.
#pragma once

#include "csrc/plan/plan.h"

namespace rdmacoll {

Plan tree_all_reduce(uint16_t rank, uint16_t world);
Plan tree_reduce(uint16_t rank, uint16_t world, uint16_t root);
Plan tree_broadcast(uint16_t rank, uint16_t world, uint16_t root);

}  // namespace rdmacoll
