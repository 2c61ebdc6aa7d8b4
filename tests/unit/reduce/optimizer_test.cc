// Which hyperparameters check() takes, how much state they need, and the numbers of single steps
// worked out by hand.
#include "csrc/reduce/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "csrc/reduce/optimize.h"
#include "tests/unit/reduce/optimizer_cases.h"

namespace rdmacoll::optimizer_test {
namespace {

using enum OptimizerKind;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(OptimizerCheck, TakesWhatTorchTakes) {
  for (const auto& [name, optimizer] : reference::elementwise_optimizers())
    EXPECT_TRUE(check(optimizer).ok()) << name << ": " << check(optimizer).message();
  for (const auto& [name, optimizer] : reference::rowwise_optimizers())
    EXPECT_TRUE(check(optimizer).ok()) << name << ": " << check(optimizer).message();
  EXPECT_TRUE(check({.kind = Sgd, .momentum = 2, .dampening = -3}).ok());  // torch has no bounds
}

void expect_refused(const Optimizer& optimizer, const std::string& message) {
  const Status status = check(optimizer);
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
  EXPECT_EQ(status.message(), message);
}

TEST(OptimizerCheck, NamesParameterValueAndRemedy) {
  expect_refused({.kind = Sgd, .lr = -0.1}, "lr is -0.1: give 0 or more");
  expect_refused({.kind = Adagrad, .lr_decay = -1e-10}, "lr_decay is -1e-10: give 0 or more");
  expect_refused({.kind = Adam, .beta1 = 1}, "beta1 is 1: give 0 or more, and less than 1");
  expect_refused({.kind = AdamW, .beta2 = -0.5}, "beta2 is -0.5: give 0 or more, and less than 1");
  expect_refused({.kind = Sgd, .lr = kNan}, "lr is nan: give a number that a float holds");
  expect_refused({.kind = Sgd, .momentum = kInfinity},
                 "momentum is inf: give a number that a float holds");
  expect_refused({.kind = Adam, .eps = 1e300}, "eps is 1e+300: give a number that a float holds");
  expect_refused({.kind = Sgd, .nesterov = true},
                 "nesterov is true with momentum 0 and dampening 0: give a momentum above 0 and "
                 "dampening 0, or leave it false");
  expect_refused({.kind = Sgd, .momentum = 0.9, .dampening = 0.1, .nesterov = true},
                 "nesterov is true with momentum 0.9 and dampening 0.1: give a momentum above 0 "
                 "and dampening 0, or leave it false");
}

TEST(OptimizerCheck, RefusesWhatTheKindHasNot) {
  expect_refused({.kind = Adagrad, .momentum = 0.9},
                 "momentum is 0.9: Adagrad has none, leave it 0");
  expect_refused({.kind = Adam, .nesterov = true},
                 "nesterov is true: Adam has none, leave it false");
  expect_refused({.kind = Sgd, .eps = 1e-8}, "eps is 1e-08: Sgd has none, leave it 0");
  expect_refused({.kind = RowwiseAdagrad, .beta1 = kNan},
                 "beta1 is nan: RowwiseAdagrad has none, leave it 0");
  expect_refused({.kind = static_cast<OptimizerKind>(200)},
                 "kind is 200: give one that optimizer.h lists");
}

// Each parameter by itself: what one kind refuses for its sign or size, NaN is refused for, too.
TEST(OptimizerCheck, RefusesNoNumbersEverywhere) {
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    for (double Optimizer::* const each :
         {&Optimizer::lr, &Optimizer::weight_decay, &Optimizer::momentum, &Optimizer::dampening,
          &Optimizer::lr_decay, &Optimizer::initial_accumulator_value, &Optimizer::eps,
          &Optimizer::beta1, &Optimizer::beta2})
      for (const OptimizerKind kind : {Sgd, Adagrad, RowwiseAdagrad, Adam, AdamW}) {
        Optimizer optimizer = {.kind = kind};
        optimizer.*each = bad;
        EXPECT_FALSE(check(optimizer).ok()) << optimizer_name(kind);
      }
  }
}

TEST(Optimizer, SaysHowMuchStateItNeeds) {
  EXPECT_EQ(states_per_element({.kind = Sgd}), 0u);
  EXPECT_EQ(states_per_element({.kind = Sgd, .momentum = 0.9}), 1u);
  EXPECT_EQ(states_per_element({.kind = Adagrad}), 1u);
  EXPECT_EQ(states_per_element({.kind = RowwiseAdagrad}), 0u);
  EXPECT_EQ(states_per_element({.kind = Adam}), 2u);
  EXPECT_EQ(states_per_element({.kind = AdamW}), 2u);
  for (const OptimizerKind kind : {Sgd, Adagrad, Adam, AdamW})
    EXPECT_EQ(states_per_row({.kind = kind}), 0u);
  EXPECT_EQ(states_per_row({.kind = RowwiseAdagrad}), 1u);
  EXPECT_EQ(initial_state({.kind = Adagrad, .initial_accumulator_value = 0.1}), 0.1f);
  EXPECT_EQ(initial_state({.kind = Adam}), 0.0f);
  EXPECT_STREQ(optimizer_name(RowwiseAdagrad), "RowwiseAdagrad");
  EXPECT_STREQ(optimizer_name(static_cast<OptimizerKind>(200)), "unknown");
}

// One element, stepped once.
float moved(const Optimizer& optimizer, uint64_t t, float value, float gradient, float* state) {
  const void* const from[] = {&gradient};
  float* const states[] = {state, state + 1};
  optimize(step_of(optimizer, t), {from, 1}, &value, &value, states, 1);
  return value;
}

TEST(OptimizerStep, GivesTheNumbersOfTheFormulas) {
  float state[2] = {};
  EXPECT_EQ(moved({.kind = Sgd, .lr = 0.5}, 1, 3, 4, state), 1);
  EXPECT_EQ(moved({.kind = Sgd, .lr = 0.5, .weight_decay = 2}, 1, 3, 4, state), -2);
  EXPECT_EQ(moved({.kind = Sgd, .lr = 0.5, .maximize = true}, 1, 3, 4, state), 5);

  const Optimizer momentum = {.kind = Sgd, .lr = 0.5, .momentum = 0.5, .dampening = 0.75};
  state[0] = std::numeric_limits<float>::quiet_NaN();  // which the first step does not read
  EXPECT_EQ(moved(momentum, 1, 3, 4, state), 1);
  EXPECT_EQ(state[0], 4);
  EXPECT_EQ(moved(momentum, 2, 1, 8, state), -1);  // b = 4 / 2 + 8 / 4
  const Optimizer nesterov = {.kind = Sgd, .lr = 0.5, .momentum = 0.5, .nesterov = true};
  EXPECT_EQ(moved(nesterov, 2, 1, 8, state), 1 - 0.5f * (8 + 0.5f * 10));

  const Optimizer adagrad = {.kind = Adagrad, .lr = 6, .lr_decay = 0.5, .eps = 1};
  state[0] = 16;
  EXPECT_EQ(moved(adagrad, 5, 1, 3, state), 0);  // rate 6 / 3, divided by 5 + 1
  EXPECT_EQ(state[0], 25);

  const Optimizer adam = {.kind = Adam, .lr = 0.5, .eps = 3, .beta1 = 0.5, .beta2 = 0.75};
  state[0] = state[1] = 0;
  EXPECT_EQ(moved(adam, 1, 1, 6, state), 1 - 3.0f / 9);  // rate 1, 3 / (3 / 0.5 + 3)
  EXPECT_EQ(state[0], 3);
  EXPECT_EQ(state[1], 9);
  Optimizer adam_w = adam;
  adam_w.kind = AdamW;
  adam_w.weight_decay = 0.5;
  state[0] = state[1] = 0;
  EXPECT_EQ(moved(adam_w, 1, 4, 6, state), 3 - 3.0f / 9);  // 4 less a quarter first
}

TEST(OptimizerStep, PassesOnWhatIsNoNumber) {
  float state[2] = {};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(moved({.kind = Sgd, .lr = 0.5}, 1, 3, nan, state)));
  EXPECT_EQ(moved({.kind = Sgd, .lr = 0.5}, 1, 3, INFINITY, state), -INFINITY);
  // A weight decay of 0 is none: it does not make a NaN of infinity.
  EXPECT_EQ(moved({.kind = Sgd, .lr = 0.5}, 1, INFINITY, 1, state), INFINITY);
}

// The order of a row's sum: added from left to right, 2^24 would swallow each 1.
TEST(OptimizerStep, SumsARowBySixteenPartialSums) {
  std::vector<float> value(32, 0), gradient(32, 1);
  gradient[0] = 4096;
  const void* const from[] = {gradient.data()};
  float sum = 0;
  optimize_row(step_of({.kind = RowwiseAdagrad}, 1), {from, 1}, value.data(), value.data(), &sum,
               32);
  EXPECT_EQ(sum, (0x1p24f + 30) / 32);  // 1 is lost at element 16 alone
}

}  // namespace
}  // namespace rdmacoll::optimizer_test
