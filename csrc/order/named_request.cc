// What must be equal on all ranks. Floor: order.
#include "csrc/order/named_request.h"

#include <algorithm>
#include <cstdio>

#include "csrc/base/check.h"
#include "csrc/base/printable.h"

namespace rdmacoll {
namespace {

constexpr size_t kValueBytesShown = 256;  // of what a rank has sent, in an error

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string text_of(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (const int64_t dim : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

// The dimensions from this one on are those of all ranks.
size_t first_common(NamedKind kind) { return has_rows(kind) ? 1 : 0; }

bool is_common_equal(NamedKind kind, const std::vector<int64_t>& one,
                     const std::vector<int64_t>& other) {
  const size_t skipped = first_common(kind);
  if (one.size() != other.size() || one.size() < skipped) return false;
  const auto from = static_cast<std::ptrdiff_t>(skipped);
  return std::equal(one.begin() + from, one.end(), other.begin() + from);
}

class Comparison {
 public:
  Comparison(int32_t first_rank, const NamedRequest& first, int32_t rank,
             const NamedRequest& request)
      : first_rank_(first_rank), rank_(rank), one_(first), other_(request) {}

  Status status() const {
    if (one_.kind != other_.kind) {
      return differs("operations", named_kind_name(one_.kind), named_kind_name(other_.kind));
    }
    if (one_.tensors.size() != other_.tensors.size()) {
      return differs("numbers of tensors", std::to_string(one_.tensors.size()),
                     std::to_string(other_.tensors.size()));
    }
    const std::string of_kind = named_kind_name(one_.kind);
    for (size_t i = 0; i < one_.tensors.size(); ++i) {
      const TensorShape& mine = one_.tensors[i];
      const TensorShape& its = other_.tensors[i];
      if (mine.dtype != its.dtype) return differs("data types", mine.dtype, its.dtype);
      if (!is_common_equal(one_.kind, mine.dims, its.dims)) {
        return differs(of_kind + " tensor shapes", "a tensor of shape " + text_of(mine.dims),
                       "a tensor of shape " + text_of(its.dims));
      }
    }
    if (one_.op != other_.op) {
      return differs("reduce operations", named_op_name(one_.op), named_op_name(other_.op));
    }
    if (one_.prescale != other_.prescale) {
      return differs("prescale factors", text_of(one_.prescale), text_of(other_.prescale));
    }
    if (one_.postscale != other_.postscale) {
      return differs("postscale factors", text_of(one_.postscale), text_of(other_.postscale));
    }
    if (one_.root != other_.root) {
      return differs(of_kind + " root ranks", "root rank " + std::to_string(one_.root),
                     "root rank " + std::to_string(other_.root));
    }
    return Status();
  }

 private:
  Status differs(const std::string& what, const std::string& mine, const std::string& its) const {
    return Status(StatusCode::Mismatch,
                  "Mismatched " + what + " under the name \"" +
                      printable(one_.name, kNameBytesShown) + "\": rank " +
                      std::to_string(first_rank_) + " sent " + printable(mine, kValueBytesShown) +
                      ", but rank " + std::to_string(rank_) + " sent " +
                      printable(its, kValueBytesShown) +
                      "; give all ranks the same, or other names to other operations");
  }

  int32_t first_rank_;
  int32_t rank_;
  const NamedRequest& one_;
  const NamedRequest& other_;
};

}  // namespace

const char* named_kind_name(NamedKind kind) {
  switch (kind) {
#define X(name, text)   \
  case NamedKind::name: \
    return text;
    RDMACOLL_NAMED_KINDS(X)
#undef X
  }
  return "?";
}

const char* named_op_name(NamedOp op) {
  switch (op) {
#define X(name)       \
  case NamedOp::name: \
    return #name;
    RDMACOLL_NAMED_OPS(X)
#undef X
  }
  return "?";
}

bool has_rows(NamedKind kind) {
  return kind == NamedKind::AllGather || kind == NamedKind::AllToAll;
}

std::vector<int64_t> rows_of(const NamedRequest& request) {
  if (request.kind == NamedKind::AllToAll) return request.splits;
  std::vector<int64_t> rows;
  for (const TensorShape& tensor : request.tensors) rows.push_back(tensor.dims.at(0));
  return rows;
}

bool are_rows(const std::vector<int64_t>& rows) {
  return std::all_of(rows.begin(), rows.end(),
                     [](int64_t count) { return count >= 0 && count <= kRowsMax; });
}

bool makes_sense(const NamedRequest& request) {
  const bool is_in_rows = has_rows(request.kind);
  for (const TensorShape& tensor : request.tensors) {
    const std::vector<int64_t>& dims = tensor.dims;
    if (std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 0; })) return false;
    if (is_in_rows && (dims.empty() || dims[0] > kRowsMax)) return false;
  }
  return request.kind == NamedKind::AllToAll ? are_rows(request.splits) : request.splits.empty();
}

bool agrees(const NamedRequest& one, const NamedRequest& other) {
  return one == other || Comparison(0, one, 0, other).status().ok();
}

Status compare(const std::vector<NamedRequestPtr>& by_rank) {
  const auto first =
      std::find_if(by_rank.begin(), by_rank.end(),
                   [](const NamedRequestPtr& request) { return request != nullptr; });
  RDMACOLL_CHECK(first != by_rank.end());
  for (auto other = first + 1; other != by_rank.end(); ++other) {
    if (*other == nullptr || *other == *first) continue;
    const Comparison comparison(static_cast<int32_t>(first - by_rank.begin()), **first,
                                static_cast<int32_t>(other - by_rank.begin()), **other);
    RDMACOLL_RETURN_IF_ERROR(comparison.status());
  }
  return Status();
}

}  // namespace rdmacoll
