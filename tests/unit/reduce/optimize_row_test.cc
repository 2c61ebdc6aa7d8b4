// optimize_row() against the scalar reference, bit for bit: steps of rows of every size, by
// instruction set, sources, alignment and places.
#include <gtest/gtest.h>

#include "csrc/reduce/optimize.h"
#include "tests/unit/reduce/instruction_sets.h"
#include "tests/unit/reduce/optimizer_cases.h"
#include "tests/unit/reduce/optimizer_reference.h"

namespace rdmacoll::optimize_row_test {
namespace {

using reference::first_difference;
using reference::Floats;
using reference::InstructionSet;
using reference::NamedOptimizer;
using reference::numbers;

constexpr size_t kSizes[] = {1, 3, 8, 15, 16, 17, 31, 33, 64, 100, 1031};
constexpr uint64_t kSteps[] = {1, 2, 3, 1000};

using Row = decltype(Updates::row);

class OptimizeRow : public ::testing::TestWithParam<NamedOptimizer> {};

void expect_equal_steps(Row row, const Optimizer& optimizer, size_t source_count, size_t count,
                        bool wild, bool in_place, size_t skew) {
  std::mt19937 random(6);
  std::vector<float> value = numbers(count, false, random), want = value;
  float sum = initial_state(optimizer), want_sum = sum;
  const auto divisor = static_cast<uint32_t>(source_count == 2 ? 1 : source_count);
  for (const uint64_t t : kSteps) {
    std::vector<Floats> sources;
    std::vector<const void*> from;
    for (size_t s = 0; s < source_count; ++s)
      sources.emplace_back(numbers(count, wild, random), skew);
    for (Floats& source : sources) from.push_back(source.data());
    std::vector<float> gradients(count);
    for (size_t i = 0; i < count; ++i) {
      std::vector<float> of_each;
      for (Floats& source : sources) of_each.push_back(source.content()[i]);
      gradients[i] = reference::folded_gradient(of_each, divisor);
    }
    Floats old(value, 4 * skew), apart(std::vector<float>(count, -7), 4 * skew);
    Floats& next = in_place ? old : apart;

    row(step_of(optimizer, t), {from.data(), from.size(), divisor}, old.floats(), next.floats(),
        &sum, count);

    want = reference::reference_row(optimizer, t, want, gradients, want_sum);
    ASSERT_TRUE(reference::same_bits(sum, want_sum)) << sum << ", not " << want_sum;
    ASSERT_EQ(first_difference(next.content(), want), "") << "step " << t;
    ASSERT_TRUE(in_place || first_difference(old.content(), value).empty());
    ASSERT_TRUE(old.guards_are_whole() && apart.guards_are_whole());
    value = next.content();
  }
}

TEST_P(OptimizeRow, EveryInstructionSetEqualsTheReference) {
  for (const InstructionSet& set : reference::instruction_sets()) {
    if (!set.is_here) continue;  // matrix_test.cc says so
    for (const size_t sources : {1, 2, 3, 7})
      for (const size_t count : kSizes)
        for (const bool in_place : {false, true})
          for (const bool wild : {false, true})
            for (const size_t skew : {0, 1, 3}) {
              expect_equal_steps(set.updates().row, GetParam().optimizer, sources, count, wild,
                                 in_place, skew);
              if (HasFatalFailure()) {
                ADD_FAILURE() << set.name << ", " << count << " elements, " << sources
                              << " sources, in place " << in_place << ", wild " << wild << ", skew "
                              << skew;
                return;
              }
            }
  }
}

TEST_P(OptimizeRow, TakesAnInstructionSetOfThisProcessor) {
  expect_equal_steps(optimize_row, GetParam().optimizer, 3, 100, false, true, 1);
}

TEST_P(OptimizeRow, ARowOfNoElementsKeepsItsSum) {
  const void* const from[] = {nullptr};
  float sum = 0.25f;
  optimize_row(step_of(GetParam().optimizer, 1), {from, 1}, nullptr, nullptr, &sum, 0);
  EXPECT_EQ(sum, 0.25f);
}

INSTANTIATE_TEST_SUITE_P(All, OptimizeRow, ::testing::ValuesIn(reference::rowwise_optimizers()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rdmacoll::optimize_row_test
