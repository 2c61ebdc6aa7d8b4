// Operands: the tensors of one operation as the engine's buffers: what is not plain memory in C
// order is packed before the operation and unpacked after it, and all of it is kept alive between.
// Floor: torch_ext/tensors. Thread: one at a time.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <span>
#include <utility>
#include <vector>

#include "csrc/engine/communicator.h"

namespace rdmacoll::torch_ext {

class Operands {
 public:
  // Read only.
  ConstBuffer input(const at::Tensor& tensor);
  // Read only, while `written` are being written. It is copied if it overlaps one of them, unless
  // it is exactly the memory of `place`, which is one of them.
  ConstBuffer input_beside(const at::Tensor& tensor, std::span<const MutableBuffer> written,
                           const MutableBuffer* place = nullptr);
  // Written only; becomes one of the results.
  MutableBuffer output(const at::Tensor& tensor);
  // Read and written; becomes one of the results.
  MutableBuffer in_place(const at::Tensor& tensor);
  // Several of them. If any two overlap, the engine writes all into memory of their own, and
  // unpack() copies them in order, so that the last one wins: gloo does the same.
  std::vector<MutableBuffer> outputs(std::span<const at::Tensor> tensors);
  std::vector<MutableBuffer> in_place(std::span<const at::Tensor> tensors);
  // One buffer in the place of several: copied together now, and back by unpack().
  MutableBuffer fuse(std::span<const MutableBuffer> buffers);
  // A result that the engine does not write.
  void result(const at::Tensor& tensor) { results_.push_back(tensor); }

  // Copies what was packed or fused into the user's tensors, once the operation has succeeded.
  void unpack();

  using Tensors = c10::SmallVector<at::Tensor, 1>;  // mostly one, which allocates nothing
  const Tensors& results() const { return results_; }
  const Tensors& inputs() const { return inputs_; }
  // What a profiler shows as the operation's inputs.
  const Tensors& read() const { return inputs_.empty() ? results_ : inputs_; }

 private:
  struct Packed {
    at::Tensor temporary;
    at::Tensor memory;  // the user's, as it was at the call
  };
  enum class Before : bool { Nothing, Value };  // what the engine finds when the operation begins

  struct Fused {
    at::Tensor memory;
    std::vector<MutableBuffer> parts;  // where they came from, in order
  };

  // `apart`: in memory of its own even where the engine could write the tensor itself.
  MutableBuffer bind(const at::Tensor& tensor, Before before, bool apart);
  std::vector<MutableBuffer> bind(std::span<const at::Tensor> tensors, Before before);

  Tensors inputs_;
  Tensors results_;
  std::vector<Packed> packed_;
  std::vector<Fused> fused_;
};

// `buffer` cut into `parts` of equal bytes, in order.
template <typename Buffer>
std::vector<Buffer> cut(Buffer buffer, int parts) {
  const uint64_t bytes = buffer.bytes / static_cast<uint64_t>(parts);
  std::vector<Buffer> cuts(static_cast<size_t>(parts));
  auto* at = static_cast<const char*>(buffer.data);
  for (Buffer& part : cuts) {
    part = {const_cast<char*>(at), bytes};
    at += bytes;
  }
  return cuts;
}

}  // namespace rdmacoll::torch_ext
