// Agreed: an operation of a name as all ranks have submitted it: what a rank needs to run it, also
// one that has joined and so has not submitted it. Floor: order. Thread: values.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "csrc/order/named_request.h"

namespace rdmacoll {

struct Agreed {
  NamedRequest request;  // of the first rank that has submitted it
  // rows[r]: what rank r has said for itself; empty where no kind of operation has any (has_rows).
  std::vector<std::vector<int64_t>> rows;
  bool operator==(const Agreed&) const = default;
};

using AgreedPtr = std::shared_ptr<const Agreed>;

}  // namespace rdmacoll
