// DType and ReduceOp: what a reduction is over. Floor: reduce. Thread: values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdmacoll {

// X(name, bytes of one element)
// clang-format off
#define RDMACOLL_DTYPES(X) \
  X(Float64, 8) \
  X(Float32, 4) \
  X(Float16, 2) \
  X(BFloat16, 2) \
  X(Int64, 8) \
  X(Int32, 4) \
  X(Int16, 2) \
  X(Int8, 1) \
  X(UInt64, 8) \
  X(UInt32, 4) \
  X(UInt16, 2) \
  X(UInt8, 1) \
  X(Bool, 1) \
  X(Complex64, 8) \
  X(Complex128, 16)
// clang-format on

enum class DType : uint8_t {
#define X(name, bytes) name,
  RDMACOLL_DTYPES(X)
#undef X
};

#define RDMACOLL_REDUCE_OPS(X) X(Sum) X(Avg) X(Product) X(Min) X(Max) X(BitAnd) X(BitOr) X(BitXor)

enum class ReduceOp : uint8_t {
#define X(name) name,
  RDMACOLL_REDUCE_OPS(X)
#undef X
};

constexpr size_t dtype_bytes(DType dtype) {
  switch (dtype) {
#define X(name, bytes) \
  case DType::name:    \
    return bytes;
    RDMACOLL_DTYPES(X)
#undef X
  }
  return 0;
}

const char* dtype_name(DType dtype);
const char* reduce_op_name(ReduceOp op);

// Whether the pair means something: Avg not of Bool, Min/Max not of complex numbers, Bit* only of
// integers and Bool. (Sum of Bool is "or", Product of Bool is "and".)
bool reduction_supported(DType dtype, ReduceOp op);

}  // namespace rdmacoll
