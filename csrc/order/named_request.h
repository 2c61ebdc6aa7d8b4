// NamedRequest: an operation as a rank submits it by name, and what all ranks have said of it
// together. Floor: order. Thread: values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "csrc/base/status.h"

namespace rdmacoll {

// X(name, as errors have it)
// clang-format off
#define RDMACOLL_NAMED_KINDS(X)    \
  X(AllReduce, "allreduce")        \
  X(AllGather, "allgather")        \
  X(Broadcast, "broadcast")        \
  X(AllToAll, "alltoall")          \
  X(ReduceScatter, "reducescatter") \
  X(Barrier, "barrier")
// clang-format on

enum class NamedKind : uint8_t {
#define X(name, text) name,
  RDMACOLL_NAMED_KINDS(X)
#undef X
};

#define RDMACOLL_NAMED_OPS(X) X(Average) X(Sum) X(Adasum) X(Min) X(Max) X(Product)

enum class NamedOp : uint8_t {
#define X(name) name,
  RDMACOLL_NAMED_OPS(X)
#undef X
};

const char* named_kind_name(NamedKind kind);
const char* named_op_name(NamedOp op);

struct TensorShape {
  std::string dtype;
  std::vector<int64_t> dims;
  bool operator==(const TensorShape&) const = default;
};

struct NamedRequest {
  std::string name;
  NamedKind kind{};
  NamedOp op{};
  // Whether the name will be used again, and is worth remembering.
  bool is_kept = true;
  int32_t root = 0;
  double prescale = 1;
  double postscale = 1;
  std::vector<TensorShape> tensors;
  // Of an all_to_all: how many rows of the first dimension go to each rank.
  std::vector<int64_t> splits;
  bool operator==(const NamedRequest&) const = default;
};

using NamedRequestPtr = std::shared_ptr<const NamedRequest>;

// What each rank says for itself: of an allgather the rows of each of its tensors, of an all_to_all
// its splits; nothing of the others.
bool has_rows(NamedKind kind);
std::vector<int64_t> rows_of(const NamedRequest& request);

// Mismatch, which names two ranks and what each of them has said, unless all agree. A rank that has
// not submitted has nullptr; one has.
Status compare(const std::vector<NamedRequestPtr>& by_rank);

}  // namespace rdmacoll
