// The 16-bit floats: each of the 65,536 values beside chosen and random others, by every op and in
// every instruction set, against the scalar reference.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/reduce/inputs.h"
#include "tests/unit/reduce/instruction_sets.h"

namespace rdmacoll::small_floats_test {
namespace {

using reference::Bytes;
using reference::InstructionSet;
using Case = std::tuple<DType, ReduceOp>;

constexpr size_t kValues = 1 << 16;
constexpr int kRandomRounds = 16;
constexpr uint32_t kDivisor = 3;

Bytes bytes_of(const std::vector<uint16_t>& values) {
  Bytes bytes(2 * values.size());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Where rounding, overflow and the special values begin and end, with both signs.
std::vector<uint16_t> chosen(DType dtype) {
  const auto [mantissa_bits, exponent_bits] =
      dtype == DType::Float16 ? reference::kFloat16 : reference::kBFloat16;
  const int infinity = ((1 << exponent_bits) - 1) << mantissa_bits;
  const int one = ((1 << (exponent_bits - 1)) - 1) << mantissa_bits;
  const int least_normal = 1 << mantissa_bits;
  std::vector<uint16_t> values;
  for (const int magnitude : {0, 1, least_normal - 1, least_normal, one, one + 1, infinity - 1,
                              infinity, infinity + 1, 0x7fff})
    for (const int sign : {0, 0x8000}) values.push_back(static_cast<uint16_t>(sign | magnitude));
  return values;
}

class SmallFloats : public ::testing::TestWithParam<Case> {};

TEST_P(SmallFloats, EveryValueEqualsTheReference) {
  const auto [dtype, op] = GetParam();
  std::vector<uint16_t> all(kValues);
  for (size_t i = 0; i < kValues; ++i) all[i] = static_cast<uint16_t>(i);
  std::mt19937 random(3);
  std::vector<Bytes> others;
  for (const uint16_t value : chosen(dtype))
    others.push_back(bytes_of(std::vector<uint16_t>(kValues, value)));
  for (int round = 0; round < kRandomRounds; ++round)
    others.push_back(reference::random_bits(dtype, kValues, random));

  for (size_t other = 0; other < others.size(); ++other) {
    const std::vector<Bytes> inputs = {bytes_of(all), others[other]};
    const Bytes want = reference::reference_fold(inputs, dtype, op, kDivisor);
    const void* const sources[] = {inputs[0].data(), inputs[1].data()};
    for (const InstructionSet& set : reference::instruction_sets()) {
      if (!set.is_here) continue;  // matrix_test.cc says so
      Bytes got(want.size());
      set.fold_of(dtype, op)(sources, 2, got.data(), 0, got.size(), kDivisor);
      ASSERT_EQ(reference::first_difference(dtype, got.data(), want), -1)
          << set.name << ", beside others[" << other << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SmallFloats,
                         ::testing::Combine(::testing::Values(DType::Float16, DType::BFloat16),
                                            ::testing::Values(ReduceOp::Sum, ReduceOp::Avg,
                                                              ReduceOp::Product, ReduceOp::Min,
                                                              ReduceOp::Max)),
                         [](const auto& info) {
                           return std::string(dtype_name(std::get<0>(info.param))) + "_" +
                                  reduce_op_name(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace rdmacoll::small_floats_test
