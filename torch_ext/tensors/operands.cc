// Packing and unpacking. Floor: torch_ext/tensors.
#include "torch_ext/tensors/operands.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "torch_ext/tensors/overlap.h"

namespace rdmacoll::torch_ext {
namespace {

// Copies are no part of anybody's graph, and may touch inference tensors.
using NoGraph = at::AutoDispatchBelowADInplaceOrView;

bool is_plain(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

// The type as which elements are copied. torch cannot copy every type, but it can copy bytes of
// each size. To copy a conjugated or negated view takes arithmetic, so that keeps its type.
at::ScalarType moved_as(const at::Tensor& tensor) {
  if (tensor.is_conj() || tensor.is_neg()) return tensor.scalar_type();
  switch (tensor.element_size()) {
    case 1:
      return at::kByte;
    case 2:
      return at::kShort;
    case 4:
      return at::kInt;
    case 8:
      return at::kLong;
    case 16:
      return at::kComplexDouble;
    default:
      return tensor.scalar_type();
  }
}

// A plain tensor of the same memory. It stays what it is where the user's tensor is a subclass with
// a copy_() of its own, or is given other memory while the operation is in flight.
at::Tensor memory_of(const at::Tensor& tensor, at::ScalarType type) {
  at::Tensor memory = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(tensor.storage()), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(type));
  memory.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                      tensor.storage_offset());
  memory._set_conj(tensor.is_conj());
  memory._set_neg(tensor.is_neg());
  return memory;
}

at::Tensor room_for(const at::Tensor& tensor) {
  return at::empty(tensor.sizes(), at::TensorOptions().dtype(tensor.dtype()));
}

at::Tensor packed_copy(const at::Tensor& tensor) {
  const NoGraph no_graph;
  const at::ScalarType type = moved_as(tensor);
  at::Tensor copy = room_for(tensor);
  memory_of(copy, type).copy_(memory_of(tensor, type));
  return copy;
}

uint8_t* bytes_of(MutableBuffer buffer) { return static_cast<uint8_t*>(buffer.data); }

MutableBuffer writable(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr(), tensor.nbytes()};
}

}  // namespace

ConstBuffer Operands::input(const at::Tensor& tensor) {
  const at::Tensor& kept = inputs_.emplace_back(is_plain(tensor) ? tensor : packed_copy(tensor));
  return {kept.const_data_ptr(), kept.nbytes()};
}

ConstBuffer Operands::input_beside(const at::Tensor& tensor, std::span<const MutableBuffer> written,
                                   const MutableBuffer* place) {
  const ConstBuffer buffer = input(tensor);
  const bool is_beside =
      std::all_of(written.begin(), written.end(), [&](const MutableBuffer& output) {
        if (!overlap(buffer, {output.data, output.bytes})) return true;
        return &output == place && output.data == buffer.data && output.bytes == buffer.bytes;
      });
  if (is_beside) return buffer;
  inputs_.back() = packed_copy(tensor);
  return {inputs_.back().const_data_ptr(), buffer.bytes};
}

MutableBuffer Operands::output(const at::Tensor& tensor) {
  return bind(tensor, Before::Nothing, false);
}

MutableBuffer Operands::in_place(const at::Tensor& tensor) {
  return bind(tensor, Before::Value, false);
}

std::vector<MutableBuffer> Operands::outputs(std::span<const at::Tensor> tensors) {
  return bind(tensors, Before::Nothing);
}

std::vector<MutableBuffer> Operands::in_place(std::span<const at::Tensor> tensors) {
  return bind(tensors, Before::Value);
}

MutableBuffer Operands::bind(const at::Tensor& tensor, Before before, bool apart) {
  results_.push_back(tensor);
  if (!apart && is_plain(tensor)) return writable(tensor);
  const at::Tensor room = before == Before::Value ? packed_copy(tensor) : room_for(tensor);
  const at::ScalarType type = moved_as(tensor);
  packed_.push_back({memory_of(room, type), memory_of(tensor, type)});
  return writable(room);
}

std::vector<MutableBuffer> Operands::bind(std::span<const at::Tensor> tensors, Before before) {
  std::vector<MutableBuffer> buffers;
  for (const at::Tensor& tensor : tensors) buffers.push_back(extent(tensor));
  const bool apart = overlap_each_other(buffers);
  for (size_t i = 0; i < tensors.size(); ++i) buffers[i] = bind(tensors[i], before, apart);
  return buffers;
}

MutableBuffer Operands::fuse(std::span<const MutableBuffer> buffers) {
  uint64_t bytes = 0;
  for (const MutableBuffer& buffer : buffers) bytes += buffer.bytes;
  const at::Tensor memory = at::empty({static_cast<int64_t>(bytes)}, at::kByte);
  auto* to = memory.mutable_data_ptr<uint8_t>();
  for (const MutableBuffer& buffer : buffers) to = std::copy_n(bytes_of(buffer), buffer.bytes, to);
  fused_.push_back({memory, {buffers.begin(), buffers.end()}});
  return writable(memory);
}

void Operands::unpack() {
  for (const Fused& fused : fused_) {
    const auto* from = fused.memory.const_data_ptr<uint8_t>();
    for (const MutableBuffer& part : fused.parts) {
      std::copy_n(from, part.bytes, bytes_of(part));
      from += part.bytes;
    }
  }
  if (packed_.empty()) return;
  const NoGraph no_graph;
  for (const Packed& packed : packed_) packed.memory.copy_(packed.temporary);
}

}  // namespace rdmacoll::torch_ext
