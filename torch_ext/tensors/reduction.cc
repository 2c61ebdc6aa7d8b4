// The two translations. Floor: torch_ext/tensors.
#include "torch_ext/tensors/reduction.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <c10/util/StringUtil.h>

#include "torch_ext/base/compat.h"

namespace rdmacoll::torch_ext {
namespace {

std::optional<DType> dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return DType::Float64;
    case at::kFloat:
      return DType::Float32;
    case at::kHalf:
      return DType::Float16;
    case at::kBFloat16:
      return DType::BFloat16;
    case at::kLong:
      return DType::Int64;
    case at::kInt:
      return DType::Int32;
    case at::kShort:
      return DType::Int16;
    case at::kChar:
      return DType::Int8;
    case at::kUInt64:
      return DType::UInt64;
    case at::kUInt32:
      return DType::UInt32;
    case at::kUInt16:
      return DType::UInt16;
    case at::kByte:
      return DType::UInt8;
    case at::kBool:
      return DType::Bool;
    case at::kComplexFloat:
      return DType::Complex64;
    case at::kComplexDouble:
      return DType::Complex128;
    default:
      return std::nullopt;
  }
}

double factor_of(const Check& check, const c10d::ReduceOp& op, at::ScalarType dtype) {
  if (!at::isFloatingType(dtype)) {
    check.fail(c10::str("op=PREMUL_SUM is not defined for dtype=", dtype,
                        "; use SUM, or convert the tensor to a floating type"));
  }
  const auto* supplement = static_cast<const PreMulSumSupplement*>(op.supplement_.get());
  if (supplement == nullptr)
    check.fail("op=PREMUL_SUM lacks its factor; use ReduceOp.PREMUL_SUM(factor)");
  return supplement->tensor_factor.defined() ? supplement->tensor_factor.item<double>()
                                             : supplement->double_factor;
}

}  // namespace

at::Tensor TorchReduction::scaled(const at::Tensor& tensor) const {
  if (!factor) return tensor;
  const at::AutoDispatchBelowADInplaceOrView no_graph;
  return at::mul(tensor, *factor);
}

void TorchReduction::scale(MutableBuffer buffer, at::ScalarType type) const {
  if (!factor) return;
  const auto elements = static_cast<int64_t>(buffer.bytes / c10::elementSize(type));
  at::from_blob(buffer.data, {elements}, type).mul_(*factor);
}

TorchReduction reduction_of(const Check& check, const c10d::ReduceOp& op, at::ScalarType dtype) {
  const std::optional<DType> ours = dtype_of(dtype);
  if (!ours) {
    check.fail(c10::str("unsupported dtype: ", dtype,
                        " cannot be reduced; convert the tensor, to float32 say"));
  }
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return {*ours, ReduceOp::Sum, std::nullopt};
    case c10d::ReduceOp::AVG:
      return {*ours, ReduceOp::Avg, std::nullopt};
    case c10d::ReduceOp::PRODUCT:
      return {*ours, ReduceOp::Product, std::nullopt};
    case c10d::ReduceOp::MIN:
      return {*ours, ReduceOp::Min, std::nullopt};
    case c10d::ReduceOp::MAX:
      return {*ours, ReduceOp::Max, std::nullopt};
    case c10d::ReduceOp::BAND:
      return {*ours, ReduceOp::BitAnd, std::nullopt};
    case c10d::ReduceOp::BOR:
      return {*ours, ReduceOp::BitOr, std::nullopt};
    case c10d::ReduceOp::BXOR:
      return {*ours, ReduceOp::BitXor, std::nullopt};
    case c10d::ReduceOp::PREMUL_SUM:
      return {*ours, ReduceOp::Sum, factor_of(check, op, dtype)};
    case c10d::ReduceOp::UNUSED:
      break;
  }
  check.fail(c10::str("unsupported reduction operation: ", static_cast<int>(op.op_)));
}

}  // namespace rdmacoll::torch_ext
