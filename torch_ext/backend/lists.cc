// Collectives over one tensor per rank. All are of any sizes, but for gather and scatter: as with
// torch's own backends theirs are of one, since each rank knows only its own and must know all.
// Floor: torch_ext/backend.
#include <c10/util/StringUtil.h>

#include "torch_ext/backend/backend.h"
#include "torch_ext/tensors/reduction.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {
namespace {

using c10d::OpType;

std::vector<ConstBuffer> bind_inputs(Operands& operands, const std::vector<at::Tensor>& tensors,
                                     std::span<const MutableBuffer> written) {
  std::vector<ConstBuffer> buffers;
  for (const at::Tensor& tensor : tensors) {
    buffers.push_back(operands.input_beside(tensor, written));
  }
  return buffers;
}

// The lists of allgather: one input and, in one list, one output per rank.
const std::vector<at::Tensor>& check_allgather(const Check& check,
                                               const std::vector<std::vector<at::Tensor>>& outputs,
                                               const std::vector<at::Tensor>& inputs, int size) {
  if (inputs.empty()) check.fail("requires non-empty input tensor list");
  if (outputs.size() != inputs.size()) {
    check.fail(c10::str("requires input/output tensor lists to have the same length, got ",
                        inputs.size(), " and ", outputs.size()));
  }
  const size_t expected = inputs.size() * static_cast<size_t>(size);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].size() == expected) continue;
    check.fail(c10::str("invalid output tensor list at index ", i, " (expected length ", expected,
                        ", got ", outputs[i].size(), ")"));
  }
  check.single_of_equals(inputs);
  return outputs[0];
}

}  // namespace

RdmaBackend::WorkRef RdmaBackend::allgather(TensorLists& outputs, Tensors& inputs,
                                            const c10d::AllgatherOptions& opts) {
  const Check check("all_gather");
  const Tensors& to = check_allgather(check, outputs, inputs, size_);
  const at::Tensor& from = inputs[0];
  check.dense(from, "input");
  check.written(to, "output");
  for (size_t i = 0; i < to.size(); ++i) check.same_type(to[i], i, from);
  // The others' sizes are theirs to know.
  check.same_size(to[static_cast<size_t>(rank_)], static_cast<size_t>(rank_), from);
  Operands operands;
  const std::vector<MutableBuffer> out = operands.outputs(to);
  const ConstBuffer in = operands.input_beside(from, out, &out[static_cast<size_t>(rank_)]);
  return launch({OpType::ALLGATHER, "rdma:all_gather", opts.asyncOp, opts.timeout},
                std::move(operands), [&](Communicator& communicator, const CallOptions& options) {
                  return communicator.all_gather(in, out, options);
                });
}

RdmaBackend::WorkRef RdmaBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                                 const c10d::ReduceScatterOptions& opts) {
  const Check check("reduce_scatter");
  const at::Tensor& to = check.single(outputs, "output tensor list");
  const Tensors& from = check.per_rank(inputs, "input", size_);
  check.written(to, "output");
  check.dense(from, "input");
  for (size_t i = 0; i < from.size(); ++i) check.same_type(from[i], i, to);
  check.same_size(to, 0, from[static_cast<size_t>(rank_)]);
  const TorchReduction reduction = reduction_of(check, opts.reduceOp, to.scalar_type());
  Operands operands;
  const MutableBuffer out = operands.output(to);
  std::vector<ConstBuffer> in;
  for (const at::Tensor& tensor : from) {
    in.push_back(operands.input_beside(reduction.scaled(tensor), {&out, 1}));
  }
  return launch({OpType::REDUCE_SCATTER, "rdma:reduce_scatter", opts.asyncOp, opts.timeout},
                std::move(operands), [&](Communicator& communicator, const CallOptions& options) {
                  return communicator.reduce_scatter(in, out, reduction.dtype, reduction.op,
                                                     options);
                });
}

RdmaBackend::WorkRef RdmaBackend::gather(TensorLists& outputs, Tensors& inputs,
                                         const c10d::GatherOptions& opts) {
  const Check check("gather");
  check.root(opts.rootRank, size_);
  const at::Tensor& from = check.single(inputs, "input tensor list");
  check.dense(from, "input");
  Operands operands;
  std::vector<MutableBuffer> out;
  if (opts.rootRank == rank_) {
    const Tensors& to = check.per_rank(outputs, "output", size_);
    check.written(to, "output");
    for (size_t i = 0; i < to.size(); ++i) {
      check.same_type(to[i], i, from);
      check.same_size(to[i], i, from);
    }
    out = operands.outputs(to);
  } else {
    check.none(outputs, "output");
  }
  const MutableBuffer* place = out.empty() ? nullptr : &out[static_cast<size_t>(rank_)];
  const ConstBuffer in = operands.input_beside(from, out, place);
  return launch({OpType::GATHER, "rdma:gather", opts.asyncOp, opts.timeout}, std::move(operands),
                [&](Communicator& communicator, CallOptions options) {
                  options.equal_blocks = true;
                  return communicator.gather(in, out, static_cast<int>(opts.rootRank), options);
                });
}

RdmaBackend::WorkRef RdmaBackend::scatter(Tensors& outputs, TensorLists& inputs,
                                          const c10d::ScatterOptions& opts) {
  const Check check("scatter");
  check.root(opts.rootRank, size_);
  const at::Tensor& to = check.single(outputs, "output tensor list");
  check.written(to, "output");
  Operands operands;
  const MutableBuffer out = operands.output(to);
  std::vector<ConstBuffer> in;
  if (opts.rootRank == rank_) {
    const Tensors& from = check.per_rank(inputs, "input", size_);
    check.dense(from, "input");
    for (size_t i = 0; i < from.size(); ++i) {
      check.same_type(from[i], i, to);
      check.same_size(from[i], i, to);
    }
    in = bind_inputs(operands, from, {&out, 1});
  } else {
    check.none(inputs, "input");
  }
  return launch({OpType::SCATTER, "rdma:scatter", opts.asyncOp, opts.timeout}, std::move(operands),
                [&](Communicator& communicator, CallOptions options) {
                  options.equal_blocks = true;
                  return communicator.scatter(in, out, static_cast<int>(opts.rootRank), options);
                });
}

RdmaBackend::WorkRef RdmaBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                           const c10d::AllToAllOptions& opts) {
  const Check check("all_to_all");
  const auto check_length = [&](const Tensors& tensors, const char* direction) {
    if (tensors.size() == static_cast<size_t>(size_)) return;
    check.fail(c10::str(direction, " tensor list size ", tensors.size(),
                        " does not match world size ", size_));
  };
  check_length(inputs, "input");
  check_length(outputs, "output");
  check.dense(inputs, "input");
  check.written(outputs, "output");
  for (size_t i = 0; i < inputs.size(); ++i) {
    check.same_type(inputs[i], i, inputs[0]);
    check.same_type(outputs[i], i, inputs[0]);
  }
  Operands operands;
  const std::vector<MutableBuffer> out = operands.outputs(outputs);
  const std::vector<ConstBuffer> in = bind_inputs(operands, inputs, out);
  return launch({OpType::ALLTOALL, "rdma:all_to_all", opts.asyncOp, opts.timeout},
                std::move(operands), [&](Communicator& communicator, const CallOptions& options) {
                  return communicator.all_to_all(in, out, options);
                });
}

}  // namespace rdmacoll::torch_ext
