// ProfiledCall: a blocking operation as torch's profiler sees it (works show themselves).
// Floor: torch_ext. Thread: one.
#pragma once

#include <ATen/record_function.h>

#include <optional>
#include <vector>

#include "torch_ext/operands.h"

namespace rdmacoll::torch_ext {

class ProfiledCall {
 public:
  // `title` is a literal.
  ProfiledCall(const char* title, const Operands& operands) {
    if (at::hasCallbacks()) [[unlikely]]
      begin(title, operands);
  }

 private:
  void begin(const char* title, const Operands& operands) {
    record_.emplace(at::RecordScope::USER_SCOPE);
    if (!record_->isActive()) return;
    const std::vector<c10::IValue> inputs(operands.read().begin(), operands.read().end());
    record_->before(title, c10::ArrayRef<const c10::IValue>(inputs.data(), inputs.size()));
  }

  std::optional<at::RecordFunction> record_;
};

}  // namespace rdmacoll::torch_ext
