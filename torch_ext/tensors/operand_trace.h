// OperandTrace: which storages meet operations of the backend, learnt while somebody traces: what
// rdmacoll/placement.py places by. Storages are watched, not kept alive.
// Floor: torch_ext/tensors. Thread: any.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "torch_ext/tensors/operands.h"

namespace rdmacoll::torch_ext {

class OperandTrace {
 public:
  struct Watched;
  // What one operation works on. It is in flight until this is let go of.
  using Use = std::vector<std::shared_ptr<Watched>>;

  struct Met {
    uint64_t id;        // of the storage, while it is traced
    at::Tensor memory;  // all of it, as bytes; undefined once nobody holds it any more
    uint64_t bytes;
    uint64_t operations;
    bool in_flight;
  };

  static OperandTrace& instance();

  // False: somebody traces already.
  bool start();
  void stop();
  // Nothing, unless somebody traces.
  Use use(const Operands& operands);
  // All that have met operations since start(); one that is gone is told once.
  std::vector<Met> met();

 private:
  void watch(const at::Tensor& tensor, Use& use);

  std::atomic<bool> tracing_{false};
  std::mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<Watched>> watched_;
};

}  // namespace rdmacoll::torch_ext
