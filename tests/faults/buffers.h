// Buffers: the memory of one rank for any collective, and starting it there. Floor: tests.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/engine/communicator.h"

namespace rdmacoll::faults {

class Buffers {
 public:
  // Every second rank has them in its heap, where peers read them.
  explicit Buffers(Communicator& communicator);

  Result<WorkPtr> start(Collective collective, Communicator& c);

  // Writes over what peers may have meant to write to; whether that is what it still holds.
  void overwrite();
  bool is_overwritten() const;

 private:
  std::vector<ConstBuffer> inputs(int size) const;
  std::vector<MutableBuffer> outputs(int size);

  std::vector<std::byte> ordinary_;
  std::byte* in_;
  std::byte* out_;
};

}  // namespace rdmacoll::faults
