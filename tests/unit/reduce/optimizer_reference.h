// reference_step(): what optimize() must give, one element at a time in plain scalar C++, straight
// from torch's formulas. Shares nothing with the code under test but the description of optimizers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "csrc/reduce/optimizer.h"

namespace rdmacoll::reference {

// A product as a processor without fused operations rounds it.
inline float times(float left, float right) {
  const volatile float product = left * right;
  return product;
}

inline float folded_gradient(const std::vector<float>& of_each_source, uint32_t divisor) {
  float sum = of_each_source[0];
  for (size_t s = 1; s < of_each_source.size(); ++s) sum += of_each_source[s];
  return divisor == 1 ? sum : sum / static_cast<float>(divisor);
}

inline float decayed(const Optimizer& o, float gradient, float value) {
  if (o.maximize) gradient = -gradient;
  if (o.kind == OptimizerKind::AdamW || o.weight_decay == 0) return gradient;
  return gradient + times(static_cast<float>(o.weight_decay), value);
}

inline float adagrad_rate(const Optimizer& o, uint64_t t) {
  const volatile double decay = static_cast<double>(t - 1) * o.lr_decay;
  return static_cast<float>(-(o.lr / (1 + decay)));
}

inline float sgd(const Optimizer& o, uint64_t t, float value, float gradient, float* state) {
  if (o.momentum != 0) {
    const auto momentum = static_cast<float>(o.momentum);
    if (t == 1)
      state[0] = gradient;
    else
      state[0] = times(state[0], momentum) + times(static_cast<float>(1 - o.dampening), gradient);
    gradient = o.nesterov ? gradient + times(momentum, state[0]) : state[0];
  }
  return value + times(static_cast<float>(-o.lr), gradient);
}

inline float adagrad(const Optimizer& o, uint64_t t, float value, float gradient, float* state) {
  state[0] += times(gradient, gradient);
  return value +
         times(adagrad_rate(o, t), gradient) / (std::sqrt(state[0]) + static_cast<float>(o.eps));
}

inline float adam(const Optimizer& o, uint64_t t, float value, float gradient, float* state) {
  const double steps = static_cast<double>(t);
  if (o.kind == OptimizerKind::AdamW && o.weight_decay != 0) {
    const volatile double product = o.lr * o.weight_decay;
    value = times(value, static_cast<float>(1 - product));
  }
  const auto weight = static_cast<float>(1 - o.beta1);
  const float away = gradient - state[0];
  state[0] = weight < 0.5f ? state[0] + times(weight, away) : gradient + times(weight - 1, away);
  const auto intake = static_cast<float>(1 - o.beta2);
  state[1] =
      times(state[1], static_cast<float>(o.beta2)) + times(times(intake, gradient), gradient);
  const auto rate = static_cast<float>(o.lr / (1 - std::pow(o.beta1, steps)));
  const auto root = static_cast<float>(std::pow(1 - std::pow(o.beta2, steps), 0.5));
  return value + times(-rate, state[0]) / (std::sqrt(state[1]) / root + static_cast<float>(o.eps));
}

// Moves `value` and its state, of all kinds but RowwiseAdagrad.
inline float reference_step(const Optimizer& o, uint64_t t, float value, float gradient,
                            float* state) {
  gradient = decayed(o, gradient, value);
  if (o.kind == OptimizerKind::Sgd) return sgd(o, t, value, gradient, state);
  if (o.kind == OptimizerKind::Adagrad) return adagrad(o, t, value, gradient, state);
  return adam(o, t, value, gradient, state);
}

inline std::vector<float> reference_row(const Optimizer& o, uint64_t t, std::vector<float> values,
                                        std::vector<float> gradients, float& sum) {
  float partial[16] = {};
  for (size_t i = 0; i < values.size(); ++i) {
    gradients[i] = decayed(o, gradients[i], values[i]);
    partial[i % 16] += times(gradients[i], gradients[i]);
  }
  for (const int half : {8, 4, 2, 1})
    for (int j = 0; j < half; ++j) partial[j] += partial[j + half];
  sum += partial[0] / static_cast<float>(values.size());
  const float denominator = std::sqrt(sum) + static_cast<float>(o.eps);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] += times(adagrad_rate(o, t), gradients[i]) / denominator;
  return values;
}

}  // namespace rdmacoll::reference
