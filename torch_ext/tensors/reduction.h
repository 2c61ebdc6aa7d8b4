// TorchReduction: torch's dtypes and reduce ops in the engine's words.
// Floor: torch_ext/tensors. Thread: values.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "csrc/engine/communicator.h"
#include "csrc/reduce/types.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {

struct TorchReduction {
  DType dtype;
  ReduceOp op;
  std::optional<double> factor;  // PREMUL_SUM: every contribution is multiplied by it first

  // What this rank contributes, scaled; the tensor itself without a factor.
  at::Tensor scaled(const at::Tensor& tensor) const;
  // Scales the elements of a buffer in place.
  void scale(MutableBuffer buffer, at::ScalarType type) const;
};

// Fails for a dtype that nothing is reduced in. Whether op and dtype go together the engine knows,
// but for PREMUL_SUM, which it has not.
TorchReduction reduction_of(const Check& check, const c10d::ReduceOp& op, at::ScalarType dtype);

}  // namespace rdmacoll::torch_ext
