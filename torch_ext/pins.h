// Pins: the memory of an operation's tensors stays where it is until the operation ends, whatever
// becomes of the tensors: peers write into it. It is kept alive, for a tensor may be given other
// memory; and torch is told not to resize it, as it is of memory that numpy holds, for that would
// free it. Blocking calls need none, as their caller waits.
// Floor: torch_ext. Thread: one at a time.
#pragma once

#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>

#include "torch_ext/operands.h"

namespace rdmacoll::torch_ext {

// Whether an operation in flight has the tensor's memory.
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
