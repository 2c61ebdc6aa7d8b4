// The operators of torch.ops.rdmacoll: blocking collectives on a group's handle. They check their
// arguments and make the call that c10d would make, so logs, checks and errors are the same.
// Floor: torch_ext/ops. Thread: any; without the GIL while they wait.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

#include <cstdint>
#include <string_view>

namespace rdmacoll::torch_ext {

// `group` is a handle (handles.h); op is one of the names that functional collectives have: "sum".
void op_all_reduce(at::Tensor& tensor, int64_t group, std::string_view op);
void op_broadcast(at::Tensor& tensor, int64_t group, int64_t root);
void op_all_gather(at::Tensor& output, const at::Tensor& input, int64_t group);
void op_reduce_scatter(at::Tensor& output, const at::Tensor& input, int64_t group,
                       std::string_view op);
// Splits in rows; none: equal ones.
void op_all_to_all(at::Tensor& output, const at::Tensor& input, int64_t group,
                   at::OptionalSymIntArrayRef output_splits,
                   at::OptionalSymIntArrayRef input_splits);

}  // namespace rdmacoll::torch_ext
