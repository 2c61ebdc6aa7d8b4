// Packing and unpacking. Floor: torch_ext.
#include "torch_ext/operands.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>

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

bool overlap(ConstBuffer input, MutableBuffer output) {
  const auto* in = static_cast<const char*>(input.data);
  const auto* out = static_cast<const char*>(output.data);
  return in < out + output.bytes && out < in + input.bytes;
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

ConstBuffer Operands::input_beside(const at::Tensor& tensor, MutableBuffer written) {
  const ConstBuffer buffer = input(tensor);
  if (!overlap(buffer, written)) return buffer;
  inputs_.back() = packed_copy(tensor);
  return {inputs_.back().const_data_ptr(), buffer.bytes};
}

MutableBuffer Operands::output(const at::Tensor& tensor) {
  results_.push_back(tensor);
  if (is_plain(tensor)) return writable(tensor);
  const NoGraph no_graph;
  packed_.push_back({at::empty_like(tensor, at::MemoryFormat::Contiguous), tensor});
  return writable(packed_.back().temporary);
}

MutableBuffer Operands::in_place(const at::Tensor& tensor) {
  results_.push_back(tensor);
  if (is_plain(tensor)) return writable(tensor);
  packed_.push_back({packed_copy(tensor), tensor});
  return writable(packed_.back().temporary);
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
  for (const Packed& packed : packed_) packed.user.copy_(packed.temporary);
}

MutableBuffer extent(std::span<const MutableBuffer> buffers) {
  char* first = nullptr;
  char* last = nullptr;
  for (const MutableBuffer& buffer : buffers) {
    if (buffer.bytes == 0) continue;
    auto* data = static_cast<char*>(buffer.data);
    first = first == nullptr ? data : std::min(first, data);
    last = std::max(last, data + buffer.bytes);
  }
  return {first, static_cast<uint64_t>(last - first)};
}

}  // namespace rdmacoll::torch_ext
