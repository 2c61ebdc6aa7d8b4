// The operators' work on tensors with memory. Floor: torch_ext/ops. Thread: any.
#include "torch_ext/ops/operators.h"

#include <c10/util/StringUtil.h>

#include <string>
#include <vector>

#include "torch_ext/ops/handles.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {
namespace {

struct NamedReduction {
  std::string_view name;
  c10d::ReduceOp::RedOpType op;
};

constexpr NamedReduction kNamedReductions[] = {
    {"sum", c10d::ReduceOp::SUM},         {"avg", c10d::ReduceOp::AVG},
    {"product", c10d::ReduceOp::PRODUCT}, {"min", c10d::ReduceOp::MIN},
    {"max", c10d::ReduceOp::MAX},         {"band", c10d::ReduceOp::BAND},
    {"bor", c10d::ReduceOp::BOR},         {"bxor", c10d::ReduceOp::BXOR},
};

c10d::ReduceOp reduction_named(const Check& check, std::string_view name) {
  std::string known;
  for (const NamedReduction& one : kNamedReductions) {
    if (one.name == name) return one.op;
    known += (known.empty() ? "" : ", ") + std::string(one.name);
  }
  check.fail(c10::str("unknown op='", name, "'; give one of ", known));
}

// A collective packs what is not contiguous. Here that would cost more than the call, unseen.
void check_contiguous(const Check& check, const at::Tensor& tensor, const char* argument) {
  check.dense(tensor, argument);
  if (tensor.is_contiguous()) [[likely]]
    return;
  check.fail(c10::str(argument, " is not contiguous (sizes ", tensor.sizes(), ", strides ",
                      tensor.strides(), "); pass its contiguous()"));
}

std::vector<int64_t> concrete(at::OptionalSymIntArrayRef splits) {
  std::vector<int64_t> values;
  if (!splits) return values;
  for (const c10::SymInt& split : *splits) values.push_back(split.guard_int(__FILE__, __LINE__));
  return values;
}

}  // namespace

void op_all_reduce(at::Tensor& tensor, int64_t group, std::string_view op) {
  constexpr const char* kName = "all_reduce_";
  const Check check(kName);
  const BackendRef backend = group_of(kName, group);
  check_contiguous(check, tensor, "tensor");
  c10d::AllreduceOptions options;
  options.reduceOp = reduction_named(check, op);
  options.asyncOp = false;
  RdmaBackend::Tensors tensors{tensor};
  backend->allreduce(tensors, options);
}

void op_broadcast(at::Tensor& tensor, int64_t group, int64_t root) {
  constexpr const char* kName = "broadcast_";
  const BackendRef backend = group_of(kName, group);
  check_contiguous(Check(kName), tensor, "tensor");
  c10d::BroadcastOptions options;
  options.rootRank = root;
  options.asyncOp = false;
  RdmaBackend::Tensors tensors{tensor};
  backend->broadcast(tensors, options);
}

void op_all_gather(at::Tensor& output, const at::Tensor& input, int64_t group) {
  constexpr const char* kName = "all_gather_into";
  const Check check(kName);
  const BackendRef backend = group_of(kName, group);
  check_contiguous(check, output, "output");
  check_contiguous(check, input, "input");
  c10d::AllgatherOptions options;
  options.asyncOp = false;
  at::Tensor read = input;
  backend->_allgather_base(output, read, options);
}

void op_reduce_scatter(at::Tensor& output, const at::Tensor& input, int64_t group,
                       std::string_view op) {
  constexpr const char* kName = "reduce_scatter_into";
  const Check check(kName);
  const BackendRef backend = group_of(kName, group);
  check_contiguous(check, output, "output");
  check_contiguous(check, input, "input");
  c10d::ReduceScatterOptions options;
  options.reduceOp = reduction_named(check, op);
  options.asyncOp = false;
  at::Tensor read = input;
  backend->_reduce_scatter_base(output, read, options);
}

void op_all_to_all(at::Tensor& output, const at::Tensor& input, int64_t group,
                   at::OptionalSymIntArrayRef output_splits,
                   at::OptionalSymIntArrayRef input_splits) {
  constexpr const char* kName = "all_to_all_into";
  const Check check(kName);
  const BackendRef backend = group_of(kName, group);
  check_contiguous(check, output, "output");
  check_contiguous(check, input, "input");
  c10d::AllToAllOptions options;
  options.asyncOp = false;
  at::Tensor read = input;
  std::vector<int64_t> out_rows = concrete(output_splits);
  std::vector<int64_t> in_rows = concrete(input_splits);
  backend->alltoall_base(output, read, out_rows, in_rows, options);
}

}  // namespace rdmacoll::torch_ext
