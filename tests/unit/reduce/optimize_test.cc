// optimize() against the scalar reference, bit for bit: every optimizer over several steps, by
// instruction set, sources, sizes, alignment, places and parts.
#include "csrc/reduce/optimize.h"

#include <gtest/gtest.h>

#include "tests/unit/reduce/instruction_sets.h"
#include "tests/unit/reduce/optimizer_cases.h"
#include "tests/unit/reduce/optimizer_reference.h"

namespace rdmacoll::optimize_test {
namespace {

using reference::first_difference;
using reference::Floats;
using reference::InstructionSet;
using reference::NamedOptimizer;
using reference::numbers;

constexpr size_t kSizes[] = {0, 1, 3, 4, 15, 16, 17, 63, 64, 65, 131};
constexpr uint64_t kSteps[] = {1, 2, 3, 1000};  // by number: those between are left out
constexpr size_t kStatesMax = 2;

using Arrays = std::vector<std::vector<float>>;

// What an optimizer works on.
struct Model {
  std::vector<float> value;
  Arrays state;
};

Model model_of(const Optimizer& optimizer, size_t count, std::mt19937& random) {
  return {
      numbers(count, false, random),
      Arrays(states_per_element(optimizer), std::vector<float>(count, initial_state(optimizer)))};
}

std::vector<float> gradients_at(const Arrays& sources, size_t i) {
  std::vector<float> of_each;
  for (const std::vector<float>& source : sources) of_each.push_back(source[i]);
  return of_each;
}

void reference_steps(const Optimizer& optimizer, uint64_t t, const Arrays& sources,
                     uint32_t divisor, Model& model) {
  for (size_t i = 0; i < model.value.size(); ++i) {
    float state[kStatesMax] = {};
    for (size_t s = 0; s < model.state.size(); ++s) state[s] = model.state[s][i];
    const float gradient = reference::folded_gradient(gradients_at(sources, i), divisor);
    model.value[i] = reference::reference_step(optimizer, t, model.value[i], gradient, state);
    for (size_t s = 0; s < model.state.size(); ++s) model.state[s][i] = state[s];
  }
}

// How a step is made.
struct How {
  bool in_place;
  Stores stores;
  size_t value_skew, source_skew;  // bytes
  size_t parts;
};

constexpr How kHow[] = {
    {true, Stores::Cached, 0, 0, 1},     {false, Stores::Cached, 0, 0, 1},
    {false, Stores::Streamed, 0, 0, 1},  {true, Stores::Streamed, 4, 1, 1},
    {false, Stores::Streamed, 60, 3, 1}, {false, Stores::Cached, 12, 2, 1},
    {true, Stores::Cached, 0, 0, 3},     {false, Stores::Streamed, 0, 5, 3},
};

using Range = decltype(Updates::range);

// Steps `model` as `how` says, and says what is wrong with the memory around it.
std::string stepped(Range range, const OptimizerStep& step, const Arrays& sources, uint32_t divisor,
                    const How& how, Model& model) {
  const size_t count = model.value.size();
  Floats value(model.value, how.value_skew);
  Floats apart(std::vector<float>(count, -7), how.value_skew);
  std::vector<Floats> from, state;
  for (const std::vector<float>& each : sources) from.emplace_back(each, how.source_skew);
  for (const std::vector<float>& each : model.state) state.emplace_back(each, how.value_skew);
  Floats& next = how.in_place ? value : apart;

  for (size_t part = 0; part < how.parts; ++part) {
    const size_t begin = count * part / how.parts, end = count * (part + 1) / how.parts;
    std::vector<const void*> from_here;
    std::vector<float*> state_here;
    for (Floats& each : from) from_here.push_back(each.data() + begin * sizeof(float));
    for (Floats& each : state) state_here.push_back(each.floats() + begin);
    range(step, {from_here.data(), from_here.size(), divisor}, value.floats() + begin,
          next.floats() + begin, state_here.data(), end - begin, how.stores);
  }

  std::string wrong;
  for (size_t s = 0; s < from.size(); ++s) {
    if (!first_difference(from[s].content(), sources[s]).empty()) wrong += "a source was written ";
    if (!from[s].guards_are_whole()) wrong += "the guards of a source were written ";
  }
  if (!how.in_place && !first_difference(value.content(), model.value).empty())
    wrong += "the old values were written ";
  if (!value.guards_are_whole() || !next.guards_are_whole()) wrong += "guards were written ";
  model.value = next.content();
  for (size_t s = 0; s < state.size(); ++s) {
    if (!state[s].guards_are_whole()) wrong += "the guards of the state were written ";
    model.state[s] = state[s].content();
  }
  return wrong;
}

class Optimize : public ::testing::TestWithParam<NamedOptimizer> {};

void expect_equal_steps(Range range, const Optimizer& optimizer, size_t source_count, size_t count,
                        bool wild, const How& how) {
  std::mt19937 random(5);
  Model got = model_of(optimizer, count, random);
  Model want = got;
  const auto divisor = static_cast<uint32_t>(source_count == 2 ? 1 : source_count);
  for (const uint64_t t : kSteps) {
    Arrays sources;
    for (size_t s = 0; s < source_count; ++s) sources.push_back(numbers(count, wild, random));
    const OptimizerStep step = step_of(optimizer, t);
    ASSERT_EQ(stepped(range, step, sources, divisor, how, got), "");
    reference_steps(optimizer, t, sources, divisor, want);
    ASSERT_EQ(first_difference(got.value, want.value), "") << "step " << t;
    for (size_t s = 0; s < want.state.size(); ++s)
      ASSERT_EQ(first_difference(got.state[s], want.state[s]), "") << "state " << s;
  }
}

TEST_P(Optimize, EveryInstructionSetEqualsTheReference) {
  for (const InstructionSet& set : reference::instruction_sets()) {
    if (!set.is_here) continue;  // matrix_test.cc says so
    for (const size_t sources : {1, 2, 3, 7})
      for (const size_t count : kSizes)
        for (size_t how = 0; how < std::size(kHow); ++how)
          for (const bool wild : {false, true}) {
            expect_equal_steps(set.updates().range, GetParam().optimizer, sources, count, wild,
                               kHow[how]);
            if (HasFatalFailure()) {
              ADD_FAILURE() << set.name << ", " << count << " elements, " << sources
                            << " sources, kHow[" << how << "], wild " << wild;
              return;
            }
          }
  }
}

TEST_P(Optimize, TakesAnInstructionSetOfThisProcessor) {
  for (const How& how : kHow)
    expect_equal_steps(optimize, GetParam().optimizer, 3, 1031, false, how);
}

INSTANTIATE_TEST_SUITE_P(All, Optimize, ::testing::ValuesIn(reference::elementwise_optimizers()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rdmacoll::optimize_test
