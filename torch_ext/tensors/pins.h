// Pins: keep the memory of an operation's tensors until the operation ends, as peers write into it.
// It is held, because a tensor may be given other memory meanwhile. And torch is made to refuse to
// resize it, which would free it, as it does for memory that numpy holds. Blocking calls need no
// pins, as their caller waits.
// Floor: torch_ext/tensors. Thread: one at a time.
#pragma once

#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>

#include "torch_ext/tensors/operands.h"

namespace rdmacoll::torch_ext {

// Whether an operation in flight has pinned the tensor's memory.
bool is_in_flight(const at::Tensor& tensor);

class Pins {
 public:
  explicit Pins(const Operands& operands);
  ~Pins() { release(); }
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;

  void release();

 private:
  void pin(const at::Tensor& tensor);

  c10::SmallVector<c10::Storage, 2> storages_;
};

}  // namespace rdmacoll::torch_ext
