// Rounds: halving and doubling from host to host, for many hosts and sizes in which rails would
// send each of them a few bytes. Inside an island as rails do it: every part of the buffer has an
// owner there, who alone sends it. Owners of the same part go through ceil(log2 H) rounds in which
// each sends to one other sums of as many blocks as there are left, and as many in which they
// gather what they have made. So messages are few, and an island sends no byte that it need not:
// 2(H-1)/H S, for any number of islands.
//
// The rounds are those of Träff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms"
// (2024): after Bruck et al. (1997), around a circle of islands, with distances that are halved and
// rounded up. An element is folded in an order that depends on its block.
// Floor: plan/layered. Thread: pure functions.
#pragma once

#include "csrc/plan/islands.h"
#include "csrc/plan/plan.h"

namespace rdmacoll {

Plan rounds_all_reduce(uint16_t rank, const Islands& islands, uint16_t root);

// The same with messages of up to so many blocks: proofs have few islands.
Plan rounds_all_reduce_with(uint16_t rank, const Islands& islands, uint32_t message_blocks);

}  // namespace rdmacoll
