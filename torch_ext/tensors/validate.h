// Check: what an operation asks of its arguments. A failure is a RuntimeError that names the
// operation, the argument, its value and the remedy, in the words of torch's own backends where
// they have words for it.
// Floor: torch_ext/tensors. Thread: a value.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "torch_ext/tensors/overlap.h"

namespace rdmacoll::torch_ext {

class Check {
 public:
  // `operation` is a literal.
  explicit Check(const char* operation) : operation_(operation) {}

  [[noreturn]] void fail(const std::string& what) const;

  // A dense CPU tensor, with memory.
  void dense(const at::Tensor& tensor, const char* argument) const {
    if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.is_cpu() ||
        (tensor.storage().data() == nullptr && tensor.numel() > 0)) [[unlikely]]
      fail_dense(tensor, argument);
  }
  void dense(const std::vector<at::Tensor>& tensors, const char* argument) const;
  // A tensor that is written: the same, and no two of its elements share memory.
  void written(const at::Tensor& tensor, const char* argument) const {
    dense(tensor, argument);
    if (!tensor.is_contiguous() && overlaps_itself(tensor)) [[unlikely]]
      fail_overlap(tensor, argument);
  }
  void written(const std::vector<at::Tensor>& tensors, const char* argument) const;
  void same_type(const at::Tensor& tensor, size_t index, const at::Tensor& like) const;
  void same_size(const at::Tensor& tensor, size_t index, const at::Tensor& like) const;

  // The one tensor of a list from the days of several devices per rank; `argument` names the list.
  const at::Tensor& single(const std::vector<at::Tensor>& tensors, const char* argument) const;
  // As above; torch's words for several are about type and size first.
  const at::Tensor& single_of_equals(const std::vector<at::Tensor>& tensors) const;

  void root(int64_t root, int size) const;
  void root_tensor(int64_t root_tensor, size_t tensors) const;
  void peer(int peer, int size, const char* argument) const;
  void tag(int tag) const;
  // The list inside the single-element list that only the root passes.
  const std::vector<at::Tensor>& per_rank(const std::vector<std::vector<at::Tensor>>& lists,
                                          const char* direction, int size) const;
  void none(const std::vector<std::vector<at::Tensor>>& lists, const char* direction) const;
  // `large` holds exactly `size` times the elements of `small`.
  void holds_per_rank(const at::Tensor& large, const char* large_argument, const at::Tensor& small,
                      const char* small_argument, int size) const;

 private:
  [[noreturn]] void fail_dense(const at::Tensor& tensor, const char* argument) const;
  [[noreturn]] void fail_overlap(const at::Tensor& tensor, const char* argument) const;

  const char* operation_;
};

}  // namespace rdmacoll::torch_ext
