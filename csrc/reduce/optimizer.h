// Optimizer: which rule turns a gradient into a new value, and its hyperparameters, with the names
// and meanings that torch.optim gives them. optimize.h has the formulas. Floor: reduce.
// Thread: values, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/base/status.h"

namespace rdmacoll {

#define RDMACOLL_OPTIMIZERS(X)                                       \
  X(Sgd)                                                             \
  X(Adagrad)                                                         \
  X(RowwiseAdagrad) /* one sum for a row instead of one an element*/ \
  X(Adam)                                                            \
  X(AdamW)

enum class OptimizerKind : uint8_t {
#define X(name) name,
  RDMACOLL_OPTIMIZERS(X)
#undef X
};

const char* optimizer_name(OptimizerKind kind);

// What a kind does not have stays 0.
struct Optimizer {
  OptimizerKind kind = OptimizerKind::Sgd;
  double lr = 0;
  double weight_decay = 0;
  bool maximize = false;
  double momentum = 0, dampening = 0;  // Sgd, with `nesterov`
  bool nesterov = false;
  double lr_decay = 0, initial_accumulator_value = 0;  // the two Adagrads
  double eps = 0;                                      // all but Sgd
  double beta1 = 0, beta2 = 0;                         // Adam and AdamW
};

// The hyperparameters that schedules change from step to step.
struct Rates {
  double lr = 0;
  double momentum = 0;  // of Sgd; of Adam and AdamW it is beta1
  bool operator==(const Rates&) const = default;
};
Rates rates_of(const Optimizer& optimizer);
Optimizer with(Optimizer optimizer, const Rates& rates);

// InvalidArgument unless the hyperparameters are what torch.optim takes, numbers that a float
// holds, and such as the kind has.
Status check(const Optimizer& optimizer);
// Likewise of an optimizer with these rates, whose state is as it was made.
Status check(const Optimizer& optimizer, const Rates& rates);

// The floats of state beside each element, as many arrays of which optimize() is given.
constexpr size_t states_per_element(const Optimizer& optimizer) {
  switch (optimizer.kind) {
    case OptimizerKind::Sgd:
      return optimizer.momentum != 0 ? 1 : 0;
    case OptimizerKind::Adagrad:
      return 1;
    case OptimizerKind::RowwiseAdagrad:
      return 0;
    case OptimizerKind::Adam:
    case OptimizerKind::AdamW:
      return 2;
  }
  return 0;
}

constexpr size_t states_per_row(const Optimizer& optimizer) {
  return optimizer.kind == OptimizerKind::RowwiseAdagrad ? 1 : 0;
}

// What every float of state is before the first step.
constexpr float initial_state(const Optimizer& optimizer) {
  return static_cast<float>(optimizer.initial_accumulator_value);
}

}  // namespace rdmacoll
