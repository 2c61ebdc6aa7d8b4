// check(): the hyperparameters that torch.optim takes. Floor: reduce.
#include "csrc/reduce/optimizer.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

namespace rdmacoll {
namespace {

enum Bound { kAnySign, kNotNegative, kBelowOne };

constexpr unsigned kSgd = 1u << static_cast<int>(OptimizerKind::Sgd);
constexpr unsigned kAdagrads = 1u << static_cast<int>(OptimizerKind::Adagrad) |
                               1u << static_cast<int>(OptimizerKind::RowwiseAdagrad);
constexpr unsigned kAdams =
    1u << static_cast<int>(OptimizerKind::Adam) | 1u << static_cast<int>(OptimizerKind::AdamW);

struct Parameter {
  const char* name;
  double Optimizer::* value;
  Bound bound;
  unsigned kinds;  // that have it
};

constexpr Parameter kParameters[] = {
    {"lr", &Optimizer::lr, kNotNegative, kSgd | kAdagrads | kAdams},
    {"weight_decay", &Optimizer::weight_decay, kNotNegative, kSgd | kAdagrads | kAdams},
    {"momentum", &Optimizer::momentum, kNotNegative, kSgd},
    {"dampening", &Optimizer::dampening, kAnySign, kSgd},
    {"lr_decay", &Optimizer::lr_decay, kNotNegative, kAdagrads},
    {"initial_accumulator_value", &Optimizer::initial_accumulator_value, kNotNegative, kAdagrads},
    {"eps", &Optimizer::eps, kNotNegative, kAdagrads | kAdams},
    {"beta1", &Optimizer::beta1, kBelowOne, kAdams},
    {"beta2", &Optimizer::beta2, kBelowOne, kAdams},
};

// std::to_string() says of 1e-10 that it is 0.000000.
std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

Status refused(const std::string& name, const std::string& value, const std::string& remedy) {
  return {StatusCode::InvalidArgument, name + " is " + value + ": " + remedy};
}

Status check(const Parameter& parameter, const Optimizer& optimizer) {
  const double value = optimizer.*parameter.value;
  if ((parameter.kinds >> static_cast<int>(optimizer.kind) & 1) == 0) {
    if (value == 0) return {};
    return refused(parameter.name, text_of(value),
                   std::string(optimizer_name(optimizer.kind)) + " has none, leave it 0");
  }
  if (!(std::abs(value) <= std::numeric_limits<float>::max()))
    return refused(parameter.name, text_of(value), "give a number that a float holds");
  if (parameter.bound == kNotNegative && value < 0)
    return refused(parameter.name, text_of(value), "give 0 or more");
  if (parameter.bound == kBelowOne && !(value >= 0 && value < 1))
    return refused(parameter.name, text_of(value), "give 0 or more, and less than 1");
  return {};
}

bool has_beta1(const Optimizer& optimizer) {
  return optimizer.kind == OptimizerKind::Adam || optimizer.kind == OptimizerKind::AdamW;
}

}  // namespace

Rates rates_of(const Optimizer& optimizer) {
  return {optimizer.lr, has_beta1(optimizer) ? optimizer.beta1 : optimizer.momentum};
}

Optimizer with(Optimizer optimizer, const Rates& rates) {
  optimizer.lr = rates.lr;
  (has_beta1(optimizer) ? optimizer.beta1 : optimizer.momentum) = rates.momentum;
  return optimizer;
}

const char* optimizer_name(OptimizerKind kind) {
  switch (kind) {
#define X(name)             \
  case OptimizerKind::name: \
    return #name;
    RDMACOLL_OPTIMIZERS(X)
#undef X
  }
  return "unknown";
}

Status check(const Optimizer& optimizer) {
  if (optimizer.kind > OptimizerKind::AdamW)
    return refused("kind", std::to_string(static_cast<int>(optimizer.kind)),
                   "give one that optimizer.h lists");
  for (const Parameter& parameter : kParameters)
    RDMACOLL_RETURN_IF_ERROR(check(parameter, optimizer));
  if (!optimizer.nesterov) return {};
  if (optimizer.kind != OptimizerKind::Sgd)
    return refused("nesterov", "true",
                   std::string(optimizer_name(optimizer.kind)) + " has none, leave it false");
  if (optimizer.momentum == 0 || optimizer.dampening != 0)
    return refused("nesterov",
                   "true with momentum " + text_of(optimizer.momentum) + " and dampening " +
                       text_of(optimizer.dampening),
                   "give a momentum above 0 and dampening 0, or leave it false");
  return {};
}

Status check(const Optimizer& optimizer, const Rates& rates) {
  const Optimizer changed = with(optimizer, rates);
  RDMACOLL_RETURN_IF_ERROR(check(changed));
  if (states_per_element(changed) <= states_per_element(optimizer)) return {};
  return refused("momentum", text_of(rates.momentum),
                 "the optimizer was made without, and has no state for it; leave it 0");
}

}  // namespace rdmacoll
