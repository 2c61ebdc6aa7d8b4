// Leaders: plans of two levels for latency. H islands, S bytes: out of an island go at most (H-1)
// S, in at most one message to each other island, and a result is one network latency away (a
// barrier: log2 H). Who speaks to which island is dealt round over the ranks of one's own.
// Floor: plan/layered. Thread: pure functions.
//
//   all_reduce  every rank sums up its island; for each other island one of them sends the sum, and
//               one takes that island's and shows it to the others. All ranks fold the islands'
//               sums in the same order, each for itself.
//   reduce      one rank of each island sends the island's sum to the root
//   broadcast   the root sends to one rank of each other island, which shows it to the others
//   all_gather  for each other island one rank sends the blocks of its own, as one message, and one
//               takes that island's and shows them to the others
//   reduce_scatter
//               the same with the sums, over its island, of the other island's blocks. Each rank
//               folds the islands' sums of its block in their order.
//   all_to_all  what the ranks of one island have for those of another is brought together at one
//               rank, goes to one rank there, as one message, and is dealt out
//   gather      one rank of each island takes its blocks and sends them, as one message, to one
//               rank of the root's island, which passes them on to the root
//   scatter     the same the other way
//   barrier     through the first rank of each island; these by dissemination
#pragma once

#include "csrc/plan/islands.h"
#include "csrc/plan/plan.h"

namespace rdmacoll {

Plan leaders_all_reduce(uint16_t rank, const Islands& islands, uint16_t root);
Plan leaders_reduce(uint16_t rank, const Islands& islands, uint16_t root);
Plan leaders_broadcast(uint16_t rank, const Islands& islands, uint16_t root);
Plan leaders_all_gather(uint16_t rank, const Islands& islands, uint16_t root);
Plan leaders_reduce_scatter(uint16_t rank, const Islands& islands, uint16_t root);
Plan leaders_all_to_all(uint16_t rank, const Islands& islands, uint16_t root);
Plan leaders_gather(uint16_t rank, const Islands& islands, uint16_t root);
Plan leaders_scatter(uint16_t rank, const Islands& islands, uint16_t root);
Plan leaders_barrier(uint16_t rank, const Islands& islands, uint16_t root);

}  // namespace rdmacoll
