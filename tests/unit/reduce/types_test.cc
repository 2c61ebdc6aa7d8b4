// Names and sizes of dtypes, and which op means something for which.
#include "csrc/reduce/types.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/reduce/reference.h"

namespace rdmacoll::types_test {
namespace {

TEST(Types, NamesAndSizes) {
  EXPECT_STREQ(dtype_name(DType::BFloat16), "BFloat16");
  EXPECT_STREQ(reduce_op_name(ReduceOp::BitXor), "BitXor");
  EXPECT_STREQ(dtype_name(static_cast<DType>(200)), "unknown");
  EXPECT_STREQ(reduce_op_name(static_cast<ReduceOp>(200)), "unknown");
  EXPECT_EQ(dtype_bytes(DType::Bool), 1u);
  EXPECT_EQ(dtype_bytes(DType::Complex128), 16u);
}

TEST(Types, SupportedIsWhatTheHeaderSays) {
  const std::set<DType> floats = {DType::Float64, DType::Float32, DType::Float16, DType::BFloat16};
  const std::set<DType> complexes = {DType::Complex64, DType::Complex128};
  for (const DType dtype : reference::kDTypes)
    for (const ReduceOp op : reference::kOps) {
      const bool is_complex = complexes.count(dtype) > 0;
      const bool is_integer = !is_complex && floats.count(dtype) == 0;  // or Bool
      bool want = true;
      if (op == ReduceOp::Avg) want = dtype != DType::Bool;
      if (op == ReduceOp::Min || op == ReduceOp::Max) want = !is_complex;
      if (op == ReduceOp::BitAnd || op == ReduceOp::BitOr || op == ReduceOp::BitXor)
        want = is_integer;
      EXPECT_EQ(reduction_supported(dtype, op), want)
          << dtype_name(dtype) << " " << reduce_op_name(op);
    }
  EXPECT_FALSE(reduction_supported(static_cast<DType>(200), ReduceOp::Sum));
  EXPECT_FALSE(reduction_supported(DType::Float32, static_cast<ReduceOp>(200)));
}

}  // namespace
}  // namespace rdmacoll::types_test
