// Collectives over one tensor: one operation of the engine each. Floor: torch_ext/backend.
#include <c10/util/StringUtil.h>

#include "torch_ext/backend/backend.h"
#include "torch_ext/tensors/reduction.h"
#include "torch_ext/tensors/splits.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {

using c10d::OpType;

RdmaBackend::WorkRef RdmaBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) {
  const Check check("broadcast");
  check.root(opts.rootRank, size_);
  check.root_tensor(opts.rootTensor, tensors.size());
  const at::Tensor& tensor = check.single_of_equals(tensors);
  check.written(tensor, "tensor");
  Operands operands;
  const MutableBuffer data = operands.in_place(tensor);
  return launch({OpType::BROADCAST, "rdma:broadcast", opts.asyncOp, opts.timeout},
                std::move(operands), [&](Communicator& communicator, const CallOptions& options) {
                  return communicator.broadcast(data.data, data.bytes,
                                                static_cast<int>(opts.rootRank), options);
                });
}

RdmaBackend::WorkRef RdmaBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  const Check check("all_reduce");
  const at::Tensor& tensor = check.single_of_equals(tensors);
  if (tensor.layout() == at::kSparse) return allreduce_sparse_coo(tensor, opts);
  check.written(tensor, "tensor");
  const TorchReduction reduction = reduction_of(check, opts.reduceOp, tensor.scalar_type());
  throw_if_failed(session_->usable());  // before the tensor is scaled
  Operands operands;
  const MutableBuffer data = operands.in_place(tensor);
  reduction.scale(data, tensor.scalar_type());
  return launch({OpType::ALLREDUCE, "rdma:all_reduce", opts.asyncOp, opts.timeout},
                std::move(operands), [&](Communicator& communicator, const CallOptions& options) {
                  return communicator.all_reduce(data.data, data.data,
                                                 static_cast<uint64_t>(tensor.numel()),
                                                 reduction.dtype, reduction.op, options);
                });
}

RdmaBackend::WorkRef RdmaBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  const Check check("reduce");
  check.root(opts.rootRank, size_);
  check.root_tensor(opts.rootTensor, tensors.size());
  const at::Tensor& tensor = check.single(tensors, "tensor list");
  check.written(tensor, "tensor");
  const TorchReduction reduction = reduction_of(check, opts.reduceOp, tensor.scalar_type());
  Operands operands;
  const ConstBuffer input = operands.input(reduction.scaled(tensor));
  MutableBuffer output;
  if (opts.rootRank == rank_) {
    output = operands.output(tensor);
  } else {
    operands.result(tensor);
  }
  return launch({OpType::REDUCE, "rdma:reduce", opts.asyncOp, opts.timeout}, std::move(operands),
                [&](Communicator& communicator, const CallOptions& options) {
                  return communicator.reduce(
                      input.data, output.data, static_cast<uint64_t>(tensor.numel()),
                      reduction.dtype, reduction.op, static_cast<int>(opts.rootRank), options);
                });
}

RdmaBackend::WorkRef RdmaBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                  const c10d::AllgatherOptions& opts) {
  const Check check("all_gather_into_tensor");
  check.written(output, "output");
  check.dense(input, "input");
  check.holds_per_rank(output, "output", input, "input", size_);
  Operands operands;
  const std::vector<MutableBuffer> out = cut(operands.output(output), size_);
  const ConstBuffer in = operands.input_beside(input, out, &out[static_cast<size_t>(rank_)]);
  return launch(
      {OpType::_ALLGATHER_BASE, "rdma:all_gather_into_tensor", opts.asyncOp, opts.timeout},
      std::move(operands), [&](Communicator& communicator, const CallOptions& options) {
        return communicator.all_gather(in, out, options);
      });
}

RdmaBackend::WorkRef RdmaBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                       const c10d::ReduceScatterOptions& opts) {
  const Check check("reduce_scatter_tensor");
  check.written(output, "output");
  check.dense(input, "input");
  check.holds_per_rank(input, "input", output, "output", size_);
  const TorchReduction reduction = reduction_of(check, opts.reduceOp, input.scalar_type());
  Operands operands;
  const MutableBuffer out = operands.output(output);
  const ConstBuffer in = operands.input_beside(reduction.scaled(input), {&out, 1});
  return launch(
      {OpType::_REDUCE_SCATTER_BASE, "rdma:reduce_scatter_tensor", opts.asyncOp, opts.timeout},
      std::move(operands), [&](Communicator& communicator, const CallOptions& options) {
        return communicator.reduce_scatter(cut(in, size_), out, reduction.dtype, reduction.op,
                                           options);
      });
}

RdmaBackend::WorkRef RdmaBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                std::vector<int64_t>& output_splits,
                                                std::vector<int64_t>& input_splits,
                                                const c10d::AllToAllOptions& opts) {
  const Check check("all_to_all_single");
  check.written(output, "output");
  check.dense(input, "input");
  check.same_type(output, 0, input);
  Operands operands;
  const auto out_rows = rows_per_rank(check, "output", output, output_splits, size_);
  const auto in_rows = rows_per_rank(check, "input", input, input_splits, size_);
  const MutableBuffer written = operands.output(output);
  const std::vector<MutableBuffer> out = cut_rows(output, written, out_rows);
  const std::vector<ConstBuffer> in =
      cut_rows(input, operands.input_beside(input, {&written, 1}), in_rows);
  const bool is_even = output_splits.empty() && input_splits.empty();
  return launch({OpType::ALLTOALL_BASE, "rdma:all_to_all", opts.asyncOp, opts.timeout},
                std::move(operands), [&](Communicator& communicator, CallOptions options) {
                  options.equal_blocks = is_even;
                  return communicator.all_to_all(in, out, options);
                });
}

RdmaBackend::WorkRef RdmaBackend::barrier(const c10d::BarrierOptions& opts) {
  return launch({OpType::BARRIER, "rdma:barrier", opts.asyncOp, opts.timeout}, Operands(),
                [](Communicator& communicator, const CallOptions& options) {
                  return communicator.barrier(options);
                });
}

}  // namespace rdmacoll::torch_ext
