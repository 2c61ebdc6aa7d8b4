// Names of DType and ReduceOp. Floor: reduce.
#include "csrc/reduce/types.h"

namespace rdmacoll {

const char* dtype_name(DType dtype) {
  switch (dtype) {
#define X(name, bytes) \
  case DType::name:    \
    return #name;
    RDMACOLL_DTYPES(X)
#undef X
  }
  return "unknown";
}

const char* reduce_op_name(ReduceOp op) {
  switch (op) {
#define X(name)        \
  case ReduceOp::name: \
    return #name;
    RDMACOLL_REDUCE_OPS(X)
#undef X
  }
  return "unknown";
}

}  // namespace rdmacoll
