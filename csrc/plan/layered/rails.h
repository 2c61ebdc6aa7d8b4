// Rails: plans of two levels for bandwidth. Ranks of one island share stages; across the network
// every rank sends, to one rank of each other island. So an island sends, and takes in, no byte
// that it need not: H islands, S bytes of all blocks.
//
//   all_reduce      out of each island 2(H-1)/H S; two network latencies
//   reduce          S out of each island but the root's, one behind the other: a chain of H-1 hops,
//                   through which tiles follow each other
//   broadcast       the same the other way
//   all_gather      every block into every other island once; one latency
//   reduce_scatter  one sum of each block out of every other island; one latency
//
// The split into a sum inside, an exchange of parts, and a gathering inside is that of NCCL's and
// UCC's hierarchical all_reduce ("split rail"); any number of ranks per island and any layout.
// Every element is folded in the same order: that of ranks inside an island, then of islands.
//
// A tile holds so many blocks that they fill slots, whatever the islands. Where a stage is too
// small for all of them, inputs go through stages in groups of blocks (parts.h). Floor:
// plan/layered. Thread: pure functions.
#pragma once

#include "csrc/plan/islands.h"
#include "csrc/plan/plan.h"

namespace rdmacoll {

Plan rails_all_reduce(uint16_t rank, const Islands& islands, uint16_t root);
Plan rails_reduce(uint16_t rank, const Islands& islands, uint16_t root);
Plan rails_broadcast(uint16_t rank, const Islands& islands, uint16_t root);
Plan rails_all_gather(uint16_t rank, const Islands& islands, uint16_t root);
Plan rails_reduce_scatter(uint16_t rank, const Islands& islands, uint16_t root);

// The same for stages of so few blocks: proofs have few ranks.
Plan rails_all_reduce_in_groups(uint16_t rank, const Islands& islands, uint32_t stage_blocks);
Plan rails_reduce_scatter_in_groups(uint16_t rank, const Islands& islands, uint32_t stage_blocks);

}  // namespace rdmacoll
