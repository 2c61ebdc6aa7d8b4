// What reduce() promises about rounding, NaN, overflow and order, by cases worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "csrc/reduce/fold.h"
#include "csrc/reduce/reduce.h"
#include "tests/unit/reduce/reference.h"

namespace rdmacoll::numerics_test {
namespace {

using reference::kBFloat16;
using reference::kFloat16;

// One element from each source, folded.
template <typename T>
T fold_one(const Reduction& reduction, const std::vector<T>& values) {
  std::vector<const void*> sources;
  for (const T& value : values) sources.push_back(&value);
  T folded{};
  void* destination = &folded;
  reduce(reduction, sources.data(), sources.size(), &destination, 1, sizeof(T));
  return folded;
}

float fold_small(DType dtype, ReduceOp op, const std::vector<float>& values, uint32_t divisor = 1) {
  const reference::SmallFloat format = dtype == DType::Float16 ? kFloat16 : kBFloat16;
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(format.store(value));
  return format.load(fold_one(Reduction{dtype, op, divisor}, bits));
}

TEST(Numerics, HalvesRoundToNearestEven) {
  const auto sum = [](std::vector<float> values) {
    return fold_small(DType::Float16, ReduceOp::Sum, values);
  };
  EXPECT_EQ(sum({2048, 1}), 2048);  // halfway to 2050, whose last bit is odd
  EXPECT_EQ(sum({2050, 1}), 2052);
  EXPECT_EQ(sum({0x1p-24f, 0x1p-24f}), 0x1p-23f);  // subnormal
  EXPECT_EQ(sum({65504, 8}), 65504);
  EXPECT_EQ(sum({65504, 16}), INFINITY);  // halfway to what would be the next
  EXPECT_EQ(sum({-65504, -65504}), -INFINITY);
}

TEST(Numerics, BrainFloatsRoundToNearestEven) {
  const auto sum = [](std::vector<float> values) {
    return fold_small(DType::BFloat16, ReduceOp::Sum, values);
  };
  EXPECT_EQ(sum({256, 1}), 256);
  EXPECT_EQ(sum({258, 1}), 260);
  EXPECT_EQ(sum({0x1.fep127f, 0x1p119f}), INFINITY);
}

TEST(Numerics, SmallFloatsRoundOnce) {
  // Rounded after every source, these would stay at 2048 and 256.
  EXPECT_EQ(fold_small(DType::Float16, ReduceOp::Sum, {2048, 1, 1}), 2050);
  EXPECT_EQ(fold_small(DType::BFloat16, ReduceOp::Sum, {256, 1, 1}), 258);
  // The sum is infinite in the format, its mean is not.
  EXPECT_EQ(fold_small(DType::Float16, ReduceOp::Avg, {65504, 65504}, 2), 65504);
}

TEST(Numerics, EveryHalfKeepsItsValueAndItsNan) {
  std::vector<uint16_t> all(1 << 16), folded(all.size()), want(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<uint16_t>(i);
    want[i] = std::isnan(kFloat16.load(all[i])) ? all[i] | 0x0200 : all[i];  // made quiet
  }
  const void* source = all.data();
  const uint64_t bytes = all.size() * sizeof(uint16_t);
  fold_portable(DType::Float16, ReduceOp::Sum)(&source, 1, folded.data(), 0, bytes, 1);
  EXPECT_EQ(folded, want);
  void* destination = folded.data();
  reduce({DType::Float16, ReduceOp::Sum}, &source, 1, &destination, 1, bytes);
  EXPECT_EQ(folded, want);
}

TEST(Numerics, NanWinsFromEitherSide) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::Min, ReduceOp::Max, ReduceOp::Sum, ReduceOp::Product})
    for (const std::vector<float>& values :
         {std::vector<float>{nan, 1, 2}, {1, nan, 2}, {1, 2, nan}, {nan, nan}}) {
      EXPECT_TRUE(std::isnan(fold_one(Reduction{DType::Float32, op}, values)));
      EXPECT_TRUE(std::isnan(fold_small(DType::Float16, op, values)));
      EXPECT_TRUE(std::isnan(fold_small(DType::BFloat16, op, values)));
      const std::vector<double> wide(values.begin(), values.end());
      EXPECT_TRUE(std::isnan(fold_one(Reduction{DType::Float64, op}, wide)));
    }
}

TEST(Numerics, ANanIsNotRoundedIntoInfinity) {
  for (const uint16_t nan : {0x7fff, 0xffff, 0x7f81}) {
    EXPECT_EQ(fold_one(Reduction{DType::BFloat16, ReduceOp::Max}, std::vector{nan}), nan);
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Product, ReduceOp::Avg})
      EXPECT_TRUE(std::isnan(
          kBFloat16.load(fold_one(Reduction{DType::BFloat16, op, 2}, std::vector{nan, nan}))));
  }
}

TEST(Numerics, SumsFoldFromLeftToRight) {
  const Reduction sum{DType::Float32, ReduceOp::Sum};
  EXPECT_EQ(fold_one<float>(sum, {1e8f, 1, -1e8f}), 0);
  EXPECT_EQ(fold_one<float>(sum, {1e8f, -1e8f, 1}), 1);
}

TEST(Numerics, IntegersWrap) {
  constexpr int32_t most = std::numeric_limits<int32_t>::max();
  constexpr int32_t least = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(fold_one<int32_t>({DType::Int32, ReduceOp::Sum}, {most, 1}), least);
  EXPECT_EQ(fold_one<int32_t>({DType::Int32, ReduceOp::Product}, {most, 2}), -2);
  EXPECT_EQ(fold_one<int8_t>({DType::Int8, ReduceOp::Sum}, {127, 127, 127}), 125);
  EXPECT_EQ(fold_one<uint16_t>({DType::UInt16, ReduceOp::Product}, {0xffff, 0xffff}), 1);
}

TEST(Numerics, SignDecidesWhichIsSmaller) {
  EXPECT_EQ(fold_one<int8_t>({DType::Int8, ReduceOp::Min}, {1, -1}), -1);
  EXPECT_EQ(fold_one<uint8_t>({DType::UInt8, ReduceOp::Min}, {1, 0xff}), 1);
}

TEST(Numerics, BoolIsZeroOrOneWhateverTheByte) {
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Product, ReduceOp::Min, ReduceOp::Max,
                            ReduceOp::BitAnd, ReduceOp::BitOr})
    EXPECT_EQ(fold_one<uint8_t>({DType::Bool, op}, {2, 4, 0x80}), 1) << reduce_op_name(op);
  EXPECT_EQ(fold_one<uint8_t>({DType::Bool, ReduceOp::BitXor}, {2, 4}), 0);
  EXPECT_EQ(fold_one<uint8_t>({DType::Bool, ReduceOp::BitXor}, {2, 0}), 1);
  EXPECT_EQ(fold_one<uint8_t>({DType::Bool, ReduceOp::Sum}, {0xff}), 1);
}

TEST(Numerics, IntegersAreAveragedTowardZero) {
  const auto avg = [](auto type, uint32_t divisor, auto... values) {
    using T = decltype(type);
    constexpr DType kType = std::is_same_v<T, int8_t>    ? DType::Int8
                            : std::is_same_v<T, uint8_t> ? DType::UInt8
                            : std::is_same_v<T, int64_t> ? DType::Int64
                                                         : DType::UInt64;
    return fold_one<T>({kType, ReduceOp::Avg, divisor}, {static_cast<T>(values)...});
  };
  using Large = std::numeric_limits<int64_t>;
  EXPECT_EQ(avg(int8_t{}, 3, -5, -3), -2);  // not -3
  EXPECT_EQ(avg(int8_t{}, 3, 5, 3), 2);
  EXPECT_EQ(avg(int8_t{}, 2, 127, 1), -64);  // the sum wraps, as Sum's does
  EXPECT_EQ(avg(int8_t{}, 200, -128), 0);    // a divisor that the type does not hold
  EXPECT_EQ(avg(uint8_t{}, 300, 255), 0);
  EXPECT_EQ(avg(uint8_t{}, 2, 255, 0), 127);  // not signed
  EXPECT_EQ(avg(int64_t{}, 2, Large::min(), 0), Large::min() / 2);
  EXPECT_EQ(avg(int64_t{}, 2, Large::max(), 1), Large::min() / 2);
  EXPECT_EQ(avg(uint64_t{}, 2, std::numeric_limits<uint64_t>::max(), 0), Large::max());
}

TEST(Numerics, OnlyAvgDivides) {
  using C = std::complex<double>;
  EXPECT_EQ(fold_one<C>({DType::Complex128, ReduceOp::Avg, 2}, {{1, 2}, {3, 6}}), C(2, 4));
  EXPECT_EQ(fold_one<double>({DType::Float64, ReduceOp::Avg, 3}, {1, 1}), 2.0 / 3.0);
  EXPECT_EQ(fold_one<double>({DType::Float64, ReduceOp::Avg, 1}, {1, 1}), 2);
  EXPECT_EQ(fold_one<double>({DType::Float64, ReduceOp::Sum, 2}, {1, 1}), 2);
  EXPECT_EQ(fold_one<int32_t>({DType::Int32, ReduceOp::Max, 2}, {7, 4}), 7);
}

TEST(Numerics, ComplexNumbersMultiply) {
  using C = std::complex<float>;
  EXPECT_EQ(fold_one<C>({DType::Complex64, ReduceOp::Product}, {{1, 2}, {3, -4}}), C(11, 2));
}

TEST(Numerics, FurtherDestinationsOfManyBlocksAreEqual) {
  const size_t elements = 40'001;
  std::vector<float> left(elements), right(elements, 0.5f);
  for (size_t i = 0; i < elements; ++i) left[i] = static_cast<float>(i);
  std::vector<std::vector<float>> results(3, std::vector<float>(elements));
  const void* sources[] = {left.data(), right.data()};
  void* destinations[] = {results[0].data(), results[1].data(), results[2].data()};
  reduce({DType::Float32, ReduceOp::Sum}, sources, 2, destinations, 3, elements * sizeof(float));
  for (size_t i = 0; i < elements; ++i)
    for (const auto& result : results) ASSERT_EQ(result[i], static_cast<float>(i) + 0.5f) << i;
}

// Past the caches or not, in place or not, aligned or not.
TEST(Numerics, StreamedDestinationsAreEqual) {
  const size_t elements = 20'003;
  for (uint32_t streamed = 0; streamed < 8; ++streamed) {
    std::vector<float> left(elements + 1), right(elements, 0.5f), further(elements + 3);
    for (size_t i = 0; i < elements; ++i) left[i + 1] = static_cast<float>(i);
    std::vector<float> own(elements);
    const void* sources[] = {left.data() + 1, right.data()};
    void* destinations[] = {left.data() + 1, own.data(), further.data() + 3};
    reduce({DType::Float32, ReduceOp::Sum}, sources, 2, destinations, 3, elements * sizeof(float),
           streamed);
    for (const void* destination : destinations)
      for (size_t i = 0; i < elements; ++i)
        ASSERT_EQ(static_cast<const float*>(destination)[i], static_cast<float>(i) + 0.5f) << i;
    ASSERT_EQ(left[0] + further[2], 0.0f);
  }
}

TEST(ReduceDeathTest, BrokenInvariantsStop) {
  float value = 0;
  const void* source = &value;
  void* destination = &value;
  const auto call = [&](Reduction reduction, size_t sources, size_t destinations, uint64_t bytes) {
    reduce(reduction, &source, sources, &destination, destinations, bytes);
  };
  const Reduction sum{DType::Float32, ReduceOp::Sum};
  EXPECT_DEATH(call(sum, 0, 1, 4), "source_count");
  EXPECT_DEATH(call(sum, 1, 0, 4), "destination_count");
  EXPECT_DEATH(call(sum, 1, 1, 3), "dtype_bytes");
  EXPECT_DEATH(call({DType::Float32, ReduceOp::Avg, 0}, 1, 1, 4), "divisor");
  EXPECT_DEATH(call({DType::Float32, ReduceOp::BitAnd}, 1, 1, 4), "supported");
  EXPECT_DEATH(call({DType::Bool, ReduceOp::Avg}, 1, 1, 4), "supported");
}

}  // namespace
}  // namespace rdmacoll::numerics_test
