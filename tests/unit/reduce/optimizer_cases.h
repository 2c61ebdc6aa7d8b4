// The optimizers that the tests of optimize() step, and what they are given: guarded arrays of
// seeded numbers, and their comparison.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "csrc/reduce/optimizer.h"

namespace rdmacoll::reference {

struct NamedOptimizer {
  const char* name;
  Optimizer optimizer;
};

inline std::ostream& operator<<(std::ostream& out, const NamedOptimizer& named) {
  return out << named.name;
}

// Every flag, and both sides of every threshold.
inline std::vector<NamedOptimizer> elementwise_optimizers() {
  using enum OptimizerKind;
  const double decay = 0.03;
  return {
      {"Sgd", {.kind = Sgd, .lr = 0.1}},
      {"SgdDecay", {.kind = Sgd, .lr = 0.1, .weight_decay = decay}},
      {"SgdMaximize", {.kind = Sgd, .lr = 0.1, .weight_decay = decay, .maximize = true}},
      {"SgdMomentum", {.kind = Sgd, .lr = 0.1, .momentum = 0.9}},
      {"SgdDampening",
       {.kind = Sgd, .lr = 0.1, .weight_decay = decay, .momentum = 0.9, .dampening = 0.3}},
      {"SgdNesterov",
       {.kind = Sgd, .lr = 0.1, .maximize = true, .momentum = 0.9, .nesterov = true}},
      {"Adagrad", {.kind = Adagrad, .lr = 0.1, .eps = 1e-10}},
      {"AdagradAll",
       {.kind = Adagrad,
        .lr = 0.1,
        .weight_decay = decay,
        .maximize = true,
        .lr_decay = 0.01,
        .initial_accumulator_value = 0.1,
        .eps = 1e-3}},
      {"Adam", {.kind = Adam, .lr = 0.01, .eps = 1e-8, .beta1 = 0.9, .beta2 = 0.999}},
      {"AdamAll",
       {.kind = Adam,
        .lr = 0.01,
        .weight_decay = decay,
        .maximize = true,
        .eps = 1e-3,
        .beta1 = 0.3,
        .beta2 = 0.5}},
      {"AdamOfNoMemory", {.kind = Adam, .lr = 0.01, .eps = 1e-8}},
      {"AdamW",
       {.kind = AdamW,
        .lr = 0.01,
        .weight_decay = decay,
        .eps = 1e-8,
        .beta1 = 0.5,
        .beta2 = 0.99}},
  };
}

inline std::vector<NamedOptimizer> rowwise_optimizers() {
  const auto kind = OptimizerKind::RowwiseAdagrad;
  return {
      {"RowwiseAdagrad", {.kind = kind, .lr = 0.1, .eps = 1e-10}},
      {"RowwiseAdagradAll",
       {.kind = kind,
        .lr = 0.1,
        .weight_decay = 0.03,
        .maximize = true,
        .lr_decay = 0.01,
        .initial_accumulator_value = 0.1,
        .eps = 1e-3}},
  };
}

// Numbers as training has them, of many magnitudes; with `wild`, also what it should not have.
inline std::vector<float> numbers(size_t count, bool wild, std::mt19937& random) {
  constexpr float kWild[] = {0.0f,
                             -0.0f,
                             std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN(),
                             std::numeric_limits<float>::denorm_min(),
                             std::numeric_limits<float>::max()};
  std::vector<float> all(count);
  for (float& each : all) {
    const float mantissa = static_cast<float>(random() % 20001) / 10000.0f - 1;
    each = std::ldexp(mantissa, static_cast<int>(random() % 12) - 8);
    if (wild && random() % 3 == 0) each = kWild[random() % std::size(kWild)];
  }
  return all;
}

// All NaN are the same: which of two operands' payloads survives is the processor's choice.
inline bool same_bits(float left, float right) {
  return std::memcmp(&left, &right, sizeof(left)) == 0 || (std::isnan(left) && std::isnan(right));
}

inline std::string first_difference(const std::vector<float>& got, const std::vector<float>& want) {
  for (size_t i = 0; i < want.size(); ++i)
    if (!same_bits(got[i], want[i]))
      return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " +
             std::to_string(want[i]);
  return "";
}

// Floats `skew` bytes off the alignment of a line, between guards.
class Floats {
 public:
  Floats(const std::vector<float>& content, size_t skew)
      : bytes_(content.size() * sizeof(float)), memory_(bytes_ + 4 * kLine, kGuard) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    start_ = kLine + (kLine - address % kLine) + skew;
    std::copy_n(reinterpret_cast<const unsigned char*>(content.data()), bytes_, data());
  }
  unsigned char* data() { return memory_.data() + start_; }
  float* floats() { return reinterpret_cast<float*>(data()); }
  std::vector<float> content() {
    std::vector<float> copy(bytes_ / sizeof(float));
    std::copy_n(data(), bytes_, reinterpret_cast<unsigned char*>(copy.data()));
    return copy;
  }
  bool guards_are_whole() const {
    for (size_t i = 0; i < memory_.size(); ++i)
      if ((i < start_ || i >= start_ + bytes_) && memory_[i] != kGuard) return false;
    return true;
  }

 private:
  static constexpr size_t kLine = 64;
  static constexpr unsigned char kGuard = 0xa5;
  size_t bytes_, start_ = 0;
  std::vector<unsigned char> memory_;
};

}  // namespace rdmacoll::reference
