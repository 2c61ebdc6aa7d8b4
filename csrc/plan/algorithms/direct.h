// Direct: every block travels once, straight from the rank that has it to the rank that wants it.
// The pairwise exchange of MPI's all-to-all (Thakur, Rabenseifner, Gropp, "Optimization of
// Collective Communication Operations in MPICH", 2005), with a lane per peer and direction, so that
// uneven sizes and late peers do not hold each other up.
// Floor: plan/algorithms.
//
// n ranks, S bytes of all blocks together (even sizes). Every rank sends and receives
//   all_gather, reduce_scatter, all_to_all   n-1 messages per tile, (n-1)/n S bytes
//   all_reduce                               both of the first two, one behind the other
//   gather, scatter                          the root (n-1)/n S bytes, the others S/n
// On mapped peers all_gather and broadcast put a block once into the sender's stage, from which all
// the others load it: one write in place of n-1.
// all_reduce and reduce_scatter fold once, in rank order.
#pragma once

#include "csrc/plan/plan.h"

namespace rdmacoll {

Plan direct_all_reduce(uint16_t rank, uint16_t world);
Plan direct_all_gather(uint16_t rank, uint16_t world);
Plan direct_reduce_scatter(uint16_t rank, uint16_t world);
Plan direct_all_to_all(uint16_t rank, uint16_t world);
Plan direct_gather(uint16_t rank, uint16_t world, uint16_t root);
Plan direct_scatter(uint16_t rank, uint16_t world, uint16_t root);

// All peers mapped.
Plan direct_mapped_all_gather(uint16_t rank, uint16_t world);
Plan direct_mapped_broadcast(uint16_t rank, uint16_t world, uint16_t root);

}  // namespace rdmacoll
