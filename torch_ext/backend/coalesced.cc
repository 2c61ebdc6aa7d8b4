// Several operations as one work: one operation of the engine per tensor, without copies; but small
// all_reduces together are one, as each would cost its latency. Floor: torch_ext/backend.
#include <c10/util/StringUtil.h>
#include <c10/util/hash.h>

#include "torch_ext/backend/backend.h"
#include "torch_ext/tensors/reduction.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {
namespace {

using c10d::OpType;

void check_pairs(const Check& check, const std::vector<at::Tensor>& outputs,
                 const std::vector<at::Tensor>& inputs) {
  if (inputs.empty()) check.fail("requires non-empty input tensor list");
  if (inputs.size() != outputs.size()) {
    check.fail(c10::str("requires input/output tensor lists to have the same length, got ",
                        inputs.size(), " and ", outputs.size()));
  }
  check.written(outputs, "output");
  check.dense(inputs, "input");
}

std::vector<at::Tensor> concatenated(const std::vector<std::vector<at::Tensor>>& lists) {
  std::vector<at::Tensor> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// Copying so little costs less than an operation of its own, and a fusion of so much gains no more
// from being larger.
constexpr uint64_t kSmallBytes = 64 << 10;
constexpr uint64_t kFusionBytes = 1 << 20;

// One operation's buffer.
struct Fusion {
  MutableBuffer buffer;
  uint64_t sizes_hash = 0;  // of what is in it: ranks must have cut it alike
};

uint64_t sizes_hash_of(std::span<const MutableBuffer> buffers) {
  uint64_t hash = 0;
  for (const MutableBuffer& buffer : buffers) hash = c10::hash_combine(hash, buffer.bytes);
  return hash;
}

// Small neighbours together, the others alone: by sizes only, so that all ranks do the same.
std::vector<Fusion> fuse(Operands& operands, std::span<const MutableBuffer> buffers) {
  std::vector<Fusion> fusions;
  const auto is_small = [&](size_t i) { return buffers[i].bytes <= kSmallBytes; };
  for (size_t first = 0, end = 0; first < buffers.size(); first = end) {
    uint64_t bytes = 0;
    do {
      bytes += buffers[end].bytes;
    } while (is_small(end++) && end < buffers.size() && is_small(end) && bytes < kFusionBytes);
    const auto together = buffers.subspan(first, end - first);
    fusions.push_back(together.size() == 1
                          ? Fusion{together[0]}
                          : Fusion{operands.fuse(together), sizes_hash_of(together)});
  }
  return fusions;
}

}  // namespace

RdmaBackend::WorkRef RdmaBackend::allreduce_coalesced(Tensors& tensors,
                                                      const c10d::AllreduceCoalescedOptions& opts) {
  const Check check("all_reduce_coalesced");
  if (tensors.empty()) check.fail("requires non-empty tensor list");
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].layout() != tensors[0].layout()) {
      check.fail(c10::str("invalid tensor layout at index ", i, " (expected ", tensors[0].layout(),
                          ", got ", tensors[i].layout(), ")"));
    }
    if (tensors[i].scalar_type() != tensors[0].scalar_type()) {
      check.fail(c10::str("tensors must all have the same type; index 0 has ",
                          tensors[0].scalar_type(), ", index ", i, " ", tensors[i].scalar_type()));
    }
  }
  check.written(tensors, "tensor");
  const TorchReduction reduction = reduction_of(check, opts.reduceOp, tensors[0].scalar_type());
  throw_if_failed(session_->usable());  // before the tensors are scaled
  Operands operands;
  const std::vector<MutableBuffer> data = operands.in_place(tensors);
  for (const MutableBuffer& buffer : data) reduction.scale(buffer, tensors[0].scalar_type());
  const std::vector<Fusion> fusions = fuse(operands, data);
  return launch({OpType::ALLREDUCE_COALESCED, "rdma:all_reduce", opts.asyncOp, opts.timeout},
                std::move(operands), fusions.size(),
                [&](Communicator& communicator, CallOptions options, size_t i) {
                  options.also_equal = fusions[i].sizes_hash;
                  const MutableBuffer& buffer = fusions[i].buffer;
                  return communicator.all_reduce(buffer.data, buffer.data,
                                                 buffer.bytes / dtype_bytes(reduction.dtype),
                                                 reduction.dtype, reduction.op, options);
                });
}

RdmaBackend::WorkRef RdmaBackend::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                                      const c10d::AllgatherOptions& opts) {
  const Check check("all_gather_coalesced");
  if (inputs.empty()) check.fail("requires non-empty input tensor list");
  if (outputs.size() != static_cast<size_t>(size_)) {
    check.fail(
        c10::str("output lists should be equal to world size, ", size_, "; got ", outputs.size()));
  }
  for (const Tensors& list : outputs) {
    if (list.size() != inputs.size()) {
      check.fail(c10::str("invalid output size: (expected length ", inputs.size(), ", got ",
                          list.size(), ")"));
    }
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].sizes() != inputs[i].sizes()) {
        check.fail(c10::str("invalid size of output tensor at index ", i, " (expected ",
                            inputs[i].sizes(), ", got ", list[i].sizes(), ")"));
      }
      check.same_type(list[i], i, inputs[i]);
    }
    check.written(list, "output");
  }
  check.dense(inputs, "input");
  Operands operands;
  const Tensors to = concatenated(outputs);
  const std::vector<MutableBuffer> written = operands.outputs(to);
  const size_t mine = static_cast<size_t>(rank_) * inputs.size();
  std::vector<ConstBuffer> in;
  std::vector<std::vector<MutableBuffer>> out(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    in.push_back(operands.input_beside(inputs[i], written, &written[mine + i]));
    for (size_t at = i; at < written.size(); at += inputs.size()) out[i].push_back(written[at]);
  }
  return launch({OpType::ALLGATHER_COALESCED, "rdma:all_gather", opts.asyncOp, opts.timeout},
                std::move(operands), inputs.size(),
                [&](Communicator& communicator, const CallOptions& options, size_t i) {
                  return communicator.all_gather(in[i], out[i], options);
                });
}

RdmaBackend::WorkRef RdmaBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) {
  const Check check("all_gather_into_tensor_coalesced");
  check_pairs(check, outputs, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    check.holds_per_rank(outputs[i], "output", inputs[i], "input", size_);
  }
  Operands operands;
  std::vector<MutableBuffer> written;
  for (const MutableBuffer& whole : operands.outputs(outputs)) {
    const auto blocks = cut(whole, size_);
    written.insert(written.end(), blocks.begin(), blocks.end());
  }
  std::vector<ConstBuffer> in;
  std::vector<std::span<const MutableBuffer>> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    out.push_back(
        std::span(written).subspan(i * static_cast<size_t>(size_), static_cast<size_t>(size_)));
    in.push_back(operands.input_beside(inputs[i], written, &out[i][static_cast<size_t>(rank_)]));
  }
  return launch({OpType::COALESCED, "rdma:all_gather_into_tensor", opts.asyncOp, opts.timeout},
                std::move(operands), inputs.size(),
                [&](Communicator& communicator, const CallOptions& options, size_t i) {
                  return communicator.all_gather(in[i], out[i], options);
                });
}

RdmaBackend::WorkRef RdmaBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& opts) {
  const Check check("reduce_scatter_tensor_coalesced");
  check_pairs(check, outputs, inputs);
  std::vector<TorchReduction> reductions;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check.holds_per_rank(inputs[i], "input", outputs[i], "output", size_);
    reductions.push_back(reduction_of(check, opts.reduceOp, inputs[i].scalar_type()));
  }
  Operands operands;
  const std::vector<MutableBuffer> out = operands.outputs(outputs);
  std::vector<std::vector<ConstBuffer>> in;
  for (size_t i = 0; i < inputs.size(); ++i) {
    in.push_back(cut(operands.input_beside(reductions[i].scaled(inputs[i]), out), size_));
  }
  return launch({OpType::COALESCED, "rdma:reduce_scatter_tensor", opts.asyncOp, opts.timeout},
                std::move(operands), inputs.size(),
                [&](Communicator& communicator, const CallOptions& options, size_t i) {
                  return communicator.reduce_scatter(in[i], out[i], reductions[i].dtype,
                                                     reductions[i].op, options);
                });
}

}  // namespace rdmacoll::torch_ext
