// Recursive halving and doubling all_reduce (Rabenseifner; Thakur, Rabenseifner, Gropp 2005): the
// bandwidth of the ring in a logarithmic number of messages. For the middle sizes.
// Floor: plan/algorithms.
//
// p: the largest power of two in n ranks. 2 log2 p messages per tile, 2(p-1)/p S bytes sent by
// every participant. The n - p ranks too many hand their whole input to a neighbour first and get
// the whole result last: two messages of half a tile more each way, S bytes more. A tile has p
// blocks; messages hold up to p/2 of them. Sums accumulate in Output.
#pragma once

#include "csrc/plan/plan.h"

namespace rdmacoll {

Plan halving_doubling_all_reduce(uint16_t rank, uint16_t world);

}  // namespace rdmacoll
