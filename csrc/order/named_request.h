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
inline constexpr NamedKind kLastNamedKind = NamedKind::Barrier;

#define RDMACOLL_NAMED_OPS(X) X(Average) X(Sum) X(Adasum) X(Min) X(Max) X(Product)

enum class NamedOp : uint8_t {
#define X(name) name,
  RDMACOLL_NAMED_OPS(X)
#undef X
};
inline constexpr NamedOp kLastNamedOp = NamedOp::Product;

const char* named_kind_name(NamedKind kind);
const char* named_op_name(NamedOp op);

// Of a name of another rank, where people see it (base/printable.h).
inline constexpr size_t kNameBytesShown = 512;

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

// More than any tensor has; those of all ranks still add up to an int64_t.
inline constexpr int64_t kRowsMax = int64_t{1} << 48;
bool are_rows(const std::vector<int64_t>& rows);
// Whether a rank may submit it: no size is negative, what is in rows has a first dimension, and
// only an all_to_all has splits.
bool makes_sense(const NamedRequest& request);

// Whether all is equal that must be on all ranks.
bool agrees(const NamedRequest& one, const NamedRequest& other);

// Mismatch, which names two ranks and what each of them has said, unless all agree. A rank that has
// not submitted has nullptr; one has.
Status compare(const std::vector<NamedRequestPtr>& by_rank);

}  // namespace rdmacoll
