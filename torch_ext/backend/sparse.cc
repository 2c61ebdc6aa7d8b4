// all_reduce of sparse COO tensors: everybody's indices and values are gathered, and summed by
// every rank in the order of the ranks. How much to gather is known only after a first exchange,
// so the call returns when all is done, asynchronous or not.
// Floor: torch_ext/backend.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <c10/util/StringUtil.h>

#include "torch_ext/backend/backend.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {
namespace {

// What a rank tells of its tensor: dimensions, non-zeros, sizes.
constexpr int64_t kNonZeros = 2;
constexpr int64_t kSizes = 3;

at::Tensor description_of(const at::Tensor& coalesced) {
  std::vector<int64_t> words{coalesced.sparse_dim(), coalesced.dense_dim(), coalesced._nnz()};
  words.insert(words.end(), coalesced.sizes().begin(), coalesced.sizes().end());
  return at::tensor(words, at::kLong);
}

std::string shape_in(const at::Tensor& description) {
  const at::IntArrayRef words(description.const_data_ptr<int64_t>(),
                              static_cast<size_t>(description.numel()));
  return c10::str(words.slice(kSizes), " (", words[0], " sparse and ", words[1],
                  " dense dimensions)");
}

void check_same_shape(const Check& check, const std::vector<at::Tensor>& descriptions, int rank) {
  const at::Tensor& mine = descriptions[static_cast<size_t>(rank)];
  for (size_t other = 0; other < descriptions.size(); ++other) {
    at::Tensor theirs = descriptions[other].clone();
    theirs[kNonZeros] = mine[kNonZeros];
    if (theirs.equal(mine)) continue;
    check.fail(c10::str("invalid tensor size: rank ", rank, " has ", shape_in(mine), ", rank ",
                        other, " has ", shape_in(theirs), "; they must be equal"));
  }
}

}  // namespace

RdmaBackend::WorkRef RdmaBackend::allreduce_sparse_coo(const at::Tensor& tensor,
                                                       const c10d::AllreduceOptions& opts) {
  const Check check("all_reduce");
  if (opts.reduceOp.op_ != c10d::ReduceOp::SUM) {
    check.fail(
        "unsupported reduction operation (all_reduce of sparse tensors only works with "
        "ReduceOp.SUM)");
  }
  if (!tensor.is_cpu()) {
    check.fail(
        c10::str("unsupported device type: tensor is on ", tensor.device(), "; pass tensor.cpu()"));
  }
  const at::AutoDispatchBelowADInplaceOrView no_graph;
  const c10d::AllgatherOptions blocking{.timeout = opts.timeout, .asyncOp = false};
  const auto gather = [&](at::Tensor mine, Tensors everyones) {
    TensorLists outputs{std::move(everyones)};
    Tensors inputs{std::move(mine)};
    allgather(outputs, inputs, blocking);
    return std::move(outputs[0]);
  };

  const at::Tensor mine = tensor.coalesce();
  const at::Tensor description = description_of(mine);
  Tensors descriptions;
  for (int rank = 0; rank < size_; ++rank) descriptions.push_back(at::empty_like(description));
  descriptions = gather(description, std::move(descriptions));
  check_same_shape(check, descriptions, rank_);

  Tensors indices;
  Tensors values;
  for (const at::Tensor& words : descriptions) {
    const int64_t non_zeros = words[kNonZeros].item<int64_t>();
    std::vector<int64_t> value_sizes = mine.values().sizes().vec();
    value_sizes[0] = non_zeros;
    // Indices lie column by column, so that they can be gathered as they come.
    indices.push_back(at::empty({non_zeros, mine.sparse_dim()}, mine.indices().options()));
    values.push_back(at::empty(value_sizes, mine.values().options()));
  }
  indices = gather(mine.indices().t().contiguous(), std::move(indices));
  values = gather(mine.values().contiguous(), std::move(values));
  tensor.copy_(
      at::_sparse_coo_tensor_unsafe(at::cat(indices, 0).t(), at::cat(values, 0), tensor.sizes())
          .coalesce());

  Operands operands;
  operands.result(tensor);
  return launch(
      {c10d::OpType::_ALLREDUCE_SPARSE, "rdma:sparse_all_reduce"}, std::move(operands), 0,
      [](Communicator&, const CallOptions&, size_t) -> Result<WorkPtr> { return WorkPtr(); });
}

}  // namespace rdmacoll::torch_ext
