// optimize(): the numbers of a step, and the loop for this processor. Floor: reduce.
#include "csrc/reduce/optimize.h"

#include <cmath>

#include "csrc/base/check.h"
#include "csrc/reduce/unfused.h"
#include "csrc/reduce/update.h"

namespace rdmacoll {
namespace {

Updates updates_for_this_processor() {
#if RDMACOLL_X86_FOLDS
  if (processor_has_avx512()) return updates_avx512();
  if (processor_has_avx2()) return updates_avx2();
#endif
  return updates_portable();
}

}  // namespace

OptimizerStep step_of(const Optimizer& optimizer, uint64_t t) {
  RDMACOLL_CHECK(t > 0);
  const double steps = static_cast<double>(t);
  double rate = optimizer.lr, decay = optimizer.weight_decay, shrink = 1, intake = 0, root = 1;
  switch (optimizer.kind) {
    case OptimizerKind::Sgd:
      intake = 1 - optimizer.dampening;
      break;
    case OptimizerKind::Adagrad:
    case OptimizerKind::RowwiseAdagrad:
      rate = optimizer.lr / (1 + (steps - 1) * optimizer.lr_decay);
      break;
    case OptimizerKind::AdamW:
      shrink = 1 - optimizer.lr * optimizer.weight_decay;
      decay = 0;
      [[fallthrough]];
    case OptimizerKind::Adam:
      intake = 1 - optimizer.beta2;
      rate = optimizer.lr / (1 - std::pow(optimizer.beta1, steps));
      root = std::sqrt(1 - std::pow(optimizer.beta2, steps));
      break;
  }
  const float moment_intake = static_cast<float>(1 - optimizer.beta1);
  const bool is_near_gradient = moment_intake >= 0.5f;
  return {
      .kind = optimizer.kind,
      .maximize = optimizer.maximize,
      .nesterov = optimizer.nesterov,
      .has_momentum = optimizer.momentum != 0,
      .is_first = t == 1,
      .is_near_gradient = is_near_gradient,
      .decay = static_cast<float>(decay),
      .shrink = static_cast<float>(shrink),
      .rate = static_cast<float>(-rate),
      .momentum = static_cast<float>(optimizer.momentum),
      .intake = static_cast<float>(intake),
      .moment_intake = is_near_gradient ? moment_intake - 1 : moment_intake,
      .beta2 = static_cast<float>(optimizer.beta2),
      .root = static_cast<float>(root),
      .eps = static_cast<float>(optimizer.eps),
  };
}

void optimize(const OptimizerStep& step, const Gradients& gradients, const float* value,
              float* next, float* const* state, uint64_t count, Stores stores) {
  RDMACOLL_CHECK(step.kind != OptimizerKind::RowwiseAdagrad);
  RDMACOLL_CHECK(gradients.source_count > 0 && gradients.divisor > 0);
  updates_for_this_processor().range(step, gradients, value, next, state, count, stores);
}

void optimize_row(const OptimizerStep& step, const Gradients& gradients, const float* value,
                  float* next, float* sum, uint64_t count) {
  RDMACOLL_CHECK(step.kind == OptimizerKind::RowwiseAdagrad);
  RDMACOLL_CHECK(gradients.source_count > 0 && gradients.divisor > 0);
  if (count > 0) updates_for_this_processor().row(step, gradients, value, next, sum, count);
}

}  // namespace rdmacoll
