// Steps: an optimizer's steps by their numbers, each computed once as long as it is asked for in
// turn. Floor: ps/table. Thread: one.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/ps/table/table_spec.h"
#include "csrc/reduce/optimize.h"

namespace rdmacoll::ps {

class Steps {
 public:
  // Without an optimizer what is pushed is added: that is how SGD ascends with a rate of 1.
  explicit Steps(const TableSpec& spec)
      : optimizer_(spec.optimizer.value_or(
            Optimizer{.kind = OptimizerKind::Sgd, .lr = 1, .maximize = true})) {}

  const Optimizer& optimizer() const { return optimizer_; }
  const OptimizerStep& of(uint64_t t) {
    Known& known = known_[t % kKept];
    if (known.t != t) known = {t, step_of(optimizer_, t)};
    return known.step;
  }

 private:
  static constexpr uint64_t kKept = 64;
  struct Known {
    uint64_t t = 0;
    OptimizerStep step{};
  };

  const Optimizer optimizer_;
  std::vector<Known> known_{kKept};
};

}  // namespace rdmacoll::ps
