// What torch knows of the operators: their schemas; that on tensors without memory, as compilers
// trace, they do nothing; and that autograd does not go through them.
// Floor: torch_ext/ops. Thread: any.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/StringUtil.h>
#include <torch/library.h>

#include "torch_ext/ops/operators.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {
namespace {

constexpr char kAllReduce[] = "all_reduce_";
constexpr char kBroadcast[] = "broadcast_";
constexpr char kAllGather[] = "all_gather_into";
constexpr char kReduceScatter[] = "reduce_scatter_into";
constexpr char kAllToAll[] = "all_to_all_into";

void refuse_gradient(const char* name, const at::Tensor& tensor) {
  if (!tensor.requires_grad()) [[likely]]
    return;
  Check(name).fail(
      "a tensor requires grad, and this operator has no derivative; call it under "
      "torch.no_grad(), or pass tensor.detach(). torch.distributed.nn.functional has collectives "
      "that autograd goes through");
}

// What was saved of a tensor for a backward is no longer what it was.
void bump_version(const at::Tensor& written) {
  if (!written.is_inference()) written.unsafeGetTensorImpl()->bump_version();
}

// What an argument means to autograd: nothing, unless it is a tensor.
template <typename Argument>
void before(const char* name, Argument& argument) {
  using Plain = std::remove_const_t<Argument>;
  if constexpr (std::is_same_v<Plain, at::Tensor>) {
    if (at::GradMode::is_enabled()) refuse_gradient(name, argument);
    if constexpr (!std::is_const_v<Argument>) bump_version(argument);
  }
}

// An operator as each dispatch key sees it.
template <const char* kName, auto kWork>
struct Operator;

template <const char* kName, typename... Args, void (*kWork)(Args...)>
struct Operator<kName, kWork> {
  static void in_autograd(c10::DispatchKeySet keys, Args... args) {
    static const auto op = c10::Dispatcher::singleton()
                               .findSchemaOrThrow((std::string("rdmacoll::") + kName).c_str(), "")
                               .template typed<void(Args...)>();
    (before(kName, args), ...);
    const at::AutoDispatchBelowADInplaceOrView below;
    op.redispatch(keys & c10::after_ADInplaceOrView_keyset, args...);
  }

  static void without_memory(Args...) {}
};

using AllReduce = Operator<kAllReduce, &op_all_reduce>;
using Broadcast = Operator<kBroadcast, &op_broadcast>;
using AllGather = Operator<kAllGather, &op_all_gather>;
using ReduceScatter = Operator<kReduceScatter, &op_reduce_scatter>;
using AllToAll = Operator<kAllToAll, &op_all_to_all>;

}  // namespace

TORCH_LIBRARY(rdmacoll, library) {
  // Compilers hand over tensors with the strides that the program gave them: contiguous.
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  library.def("all_reduce_(Tensor(a!) tensor, int group, str op=\"sum\") -> ()", tags);
  library.def("broadcast_(Tensor(a!) tensor, int group, int root=0) -> ()", tags);
  library.def("all_gather_into(Tensor(a!) output, Tensor input, int group) -> ()", tags);
  library.def(
      "reduce_scatter_into(Tensor(a!) output, Tensor input, int group, str op=\"sum\") -> ()",
      tags);
  library.def(
      "all_to_all_into(Tensor(a!) output, Tensor input, int group, SymInt[]? output_splits=None, "
      "SymInt[]? input_splits=None) -> ()",
      tags);
}

// Of every device: the checks say what is wrong with tensors that are elsewhere.
TORCH_LIBRARY_IMPL(rdmacoll, CompositeExplicitAutograd, library) {
  library.impl(kAllReduce, TORCH_FN(op_all_reduce));
  library.impl(kBroadcast, TORCH_FN(op_broadcast));
  library.impl(kAllGather, TORCH_FN(op_all_gather));
  library.impl(kReduceScatter, TORCH_FN(op_reduce_scatter));
  library.impl(kAllToAll, TORCH_FN(op_all_to_all));
}

TORCH_LIBRARY_IMPL(rdmacoll, Meta, library) {
  library.impl(kAllReduce, TORCH_FN(AllReduce::without_memory));
  library.impl(kBroadcast, TORCH_FN(Broadcast::without_memory));
  library.impl(kAllGather, TORCH_FN(AllGather::without_memory));
  library.impl(kReduceScatter, TORCH_FN(ReduceScatter::without_memory));
  library.impl(kAllToAll, TORCH_FN(AllToAll::without_memory));
}

TORCH_LIBRARY_IMPL(rdmacoll, Autograd, library) {
  library.impl(kAllReduce, TORCH_FN(AllReduce::in_autograd));
  library.impl(kBroadcast, TORCH_FN(Broadcast::in_autograd));
  library.impl(kAllGather, TORCH_FN(AllGather::in_autograd));
  library.impl(kReduceScatter, TORCH_FN(ReduceScatter::in_autograd));
  library.impl(kAllToAll, TORCH_FN(AllToAll::in_autograd));
}

}  // namespace rdmacoll::torch_ext
