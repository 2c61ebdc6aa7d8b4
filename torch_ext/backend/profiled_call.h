// ProfiledCall: a blocking operation as torch's profiler sees it (works show themselves).
// Floor: torch_ext/backend. Thread: one.
#pragma once

#include <ATen/record_function.h>

#include <optional>
#include <utility>
#include <vector>

#include "torch_ext/tensors/operands.h"

namespace rdmacoll::torch_ext {

class ProfiledCall {
 public:
  // `title` is a literal.
  ProfiledCall(const char* title, const Operands& operands) {
    auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE);
    if (callbacks) [[unlikely]]
      begin(std::move(*callbacks), title, operands);
  }

 private:
  void begin(at::StepCallbacks callbacks, const char* title, const Operands& operands) {
    record_.emplace(std::move(callbacks));
    record_->_setAsync();  // as works do: who reads profiles finds all operations alike
    const std::vector<c10::IValue> inputs(operands.read().begin(), operands.read().end());
    record_->before(title, c10::ArrayRef<const c10::IValue>(inputs.data(), inputs.size()));
  }

  std::optional<at::RecordFunction> record_;
};

}  // namespace rdmacoll::torch_ext
