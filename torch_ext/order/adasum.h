// Adasum: tensors of all ranks added so that what they have in common counts once, in pairs, then
// pairs of pairs, up to all ranks:
//
//   a + b  ->  (1 - a.b / 2|a|^2) a  +  (1 - a.b / 2|b|^2) b
//
// (Maleki et al., "Scaling Distributed Training with Adaptive Summation", 2020.) In stages:
//
//   all_to_all  each rank gets its slice, an n-th of the elements, of the tensors of all n ranks
//   allreduce   of each pair's three products, which every rank has of its slice; with them it adds
//               the pairs in its slice. Once for each of the log2(n) levels
//   allgather   gives all ranks the slices, so that all have the same bits
//
// 2 (n - 1) / n of the tensors' bytes come to each rank and leave it, as with an allreduce, and 24
// (n - 1) bytes for each tensor are reduced. Memory: the bytes of the tensors, three times so many
// if they have 16 bits, and once more if there are several of a dtype.
//
// Products are of what was added, not made of those of the ranks' tensors: where two tensors all
// but cancel each other little would be left of these. They, and what is added, are computed in
// double; what a level leaves is float, or double of doubles. A tensor of zeros changes nothing.
// Floor: torch_ext/order. Thread: one at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "torch_ext/order/named_run.h"

namespace rdmacoll::torch_ext {

// In place. The factors are those of all ranks.
struct AdasumTensor {
  at::Tensor tensor;
  double prescale = 1;
  double postscale = 1;
};

// Of floating point. The backend's ranks: a power of two, and more than one.
StartedRuns start_adasum(const RdmaBackend& backend, std::vector<NamedRun> runs,
                         std::vector<AdasumTensor> tensors);

}  // namespace rdmacoll::torch_ext
