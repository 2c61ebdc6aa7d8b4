// Packing and unpacking. Floor: torch_ext.
#include "torch_ext/operands.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <utility>

#include "torch_ext/overlap.h"

namespace rdmacoll::torch_ext {
namespace {

// Copies are no part of anybody's graph, and may touch inference tensors.
using NoGraph = at::AutoDispatchBelowADInplaceOrView;

bool is_plain(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

at::Tensor packed_copy(const at::Tensor& tensor) {
  const NoGraph no_graph;
  return tensor.resolve_conj().resolve_neg().clone(at::MemoryFormat::Contiguous);
}

// The memory of a tensor, whatever that becomes meanwhile.
at::Tensor memory_of(const at::Tensor& tensor) {
  at::Tensor memory = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(tensor.storage()), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  memory.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                      tensor.storage_offset());
  memory._set_conj(tensor.is_conj());
  memory._set_neg(tensor.is_neg());
  return memory;
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
  const NoGraph no_graph;
  at::Tensor temporary = before == Before::Value
                             ? packed_copy(tensor)
                             : at::empty_like(tensor, at::MemoryFormat::Contiguous);
  packed_.push_back({std::move(temporary), memory_of(tensor)});
  return writable(packed_.back().temporary);
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
