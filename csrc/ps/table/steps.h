// Steps: an optimizer's steps by their numbers and rates, each computed once as long as it is asked
// for in turn. Floor: ps/table. Thread: one.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/ps/table/table_spec.h"
#include "csrc/reduce/optimize.h"

namespace rdmacoll::ps {

class Steps {
 public:
  explicit Steps(const TableSpec& spec) : optimizer_(optimizer_of(spec)) {}

  const Optimizer& optimizer() const { return optimizer_; }
  const OptimizerStep& of(uint64_t t, const Rates& rates) {
    Known& known = known_[t % kKept];
    if (known.t != t || known.rates != rates) {
      known = {t, rates, step_of(with(optimizer_, rates), t)};
    }
    return known.step;
  }

 private:
  static constexpr uint64_t kKept = 64;
  struct Known {
    uint64_t t = 0;
    Rates rates{};
    OptimizerStep step{};
  };

  const Optimizer optimizer_;
  std::vector<Known> known_{kKept};
};

}  // namespace rdmacoll::ps
