// The checks and their words. Floor: torch_ext/tensors.
#include "torch_ext/tensors/validate.h"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

namespace rdmacoll::torch_ext {

void Check::fail(const std::string& what) const {
  C10_THROW_ERROR(Error, c10::str("rdma ", operation_, ": ", what));
}

void Check::fail_dense(const at::Tensor& tensor, const char* argument) const {
  if (!tensor.defined()) fail(c10::str(argument, " is an undefined tensor; pass a CPU tensor"));
  if (tensor.layout() != at::kStrided) {
    fail(c10::str("unsupported layout: ", argument, " is ", tensor.layout(),
                  "; only supports dense tensors: pass tensor.to_dense()"));
  }
  if (tensor.is_cpu()) {
    fail(c10::str(argument, " has no memory of its own (a ZeroTensor, or a subclass that wraps ",
                  "others): pass its clone(), or the tensors in it"));
  }
  fail(c10::str("unsupported device type: ", argument, " is on ", tensor.device(),
                "; this backend moves CPU tensors: pass tensor.cpu(), or give the device a backend "
                "of its own, as in backend=\"cpu:rdma,cuda:nccl\""));
}

void Check::dense(const std::vector<at::Tensor>& tensors, const char* argument) const {
  for (const at::Tensor& tensor : tensors) dense(tensor, argument);
}

void Check::fail_overlap(const at::Tensor& tensor, const char* argument) const {
  fail(c10::str(argument, " is written, but some of its elements share memory (sizes ",
                tensor.sizes(), ", strides ", tensor.strides(), "); pass its clone()"));
}

void Check::written(const std::vector<at::Tensor>& tensors, const char* argument) const {
  for (const at::Tensor& tensor : tensors) written(tensor, argument);
}

void Check::same_type(const at::Tensor& tensor, size_t index, const at::Tensor& like) const {
  if (tensor.scalar_type() == like.scalar_type()) return;
  fail(c10::str("invalid tensor type at index ", index, " (expected ", like.scalar_type(), ", got ",
                tensor.scalar_type(), "); convert one of them"));
}

void Check::same_size(const at::Tensor& tensor, size_t index, const at::Tensor& like) const {
  if (tensor.sizes() == like.sizes()) return;
  fail(c10::str("invalid tensor size at index ", index, " (expected ", like.sizes(), ", got ",
                tensor.sizes(), ")"));
}

const at::Tensor& Check::single(const std::vector<at::Tensor>& tensors,
                                const char* argument) const {
  if (tensors.size() != 1) {
    fail(c10::str("requires a single-element ", argument, ", got ", tensors.size(), " tensors"));
  }
  return tensors[0];
}

const at::Tensor& Check::single_of_equals(const std::vector<at::Tensor>& tensors) const {
  if (tensors.empty()) fail("requires non-empty tensor list");
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].layout() != tensors[0].layout()) {
      fail(c10::str("invalid tensor layout at index ", i, " (expected ", tensors[0].layout(),
                    ", got ", tensors[i].layout(), ")"));
    }
    same_type(tensors[i], i, tensors[0]);
    same_size(tensors[i], i, tensors[0]);
  }
  if (tensors.size() > 1) {
    fail(c10::str("takes a single tensor per rank, got ", tensors.size(),
                  "; call it once for each"));
  }
  return tensors[0];
}

void Check::root(int64_t root, int size) const {
  if (root >= 0 && root < size) return;
  fail(c10::str("invalid root rank: ", root, "; give a rank of the group, from 0 to ", size - 1));
}

void Check::root_tensor(int64_t root_tensor, size_t tensors) const {
  if (root_tensor >= 0 && static_cast<size_t>(root_tensor) < tensors) return;
  fail(c10::str("invalid root tensor: ", root_tensor, "; the list has ", tensors, " tensors"));
}

void Check::peer(int peer, int size, const char* argument) const {
  if (peer >= 0 && peer < size) return;
  fail(c10::str("invalid ", argument, " rank: ", peer, "; give a rank of the group, from 0 to ",
                size - 1));
}

void Check::tag(int tag) const {
  if (tag < 0) fail(c10::str("invalid tag: ", tag, "; give 0 or a positive number"));
}

const std::vector<at::Tensor>& Check::per_rank(const std::vector<std::vector<at::Tensor>>& lists,
                                               const char* direction, int size) const {
  if (lists.size() != 1) {
    fail(c10::str("requires a single-element ", direction,
                  " list that is itself a list with one tensor per rank, got ", lists.size()));
  }
  if (lists[0].size() != static_cast<size_t>(size)) {
    fail(c10::str("Incorrect ", direction, " list size ", lists[0].size(), ". ",
                  direction[0] == 'i' ? "Input" : "Output", " list size should be ", size,
                  ", same as size of the process group"));
  }
  return lists[0];
}

void Check::none(const std::vector<std::vector<at::Tensor>>& lists, const char* direction) const {
  if (!lists.empty()) fail(c10::str("requires empty ", direction, " on non-root"));
}

void Check::holds_per_rank(const at::Tensor& large, const char* large_argument,
                           const at::Tensor& small, const char* small_argument, int size) const {
  same_type(large, 0, small);
  if (large.numel() == small.numel() * size) return;
  fail(c10::str("invalid tensor size: ", large_argument, " has ", large.numel(), " elements and ",
                small_argument, " has ", small.numel(), "; ", large_argument, " must have ", size,
                " times (the group's size) as many: ", small.numel() * size));
}

}  // namespace rdmacoll::torch_ext
