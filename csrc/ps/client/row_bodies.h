// RowBodies: the bodies of the records that rows are pushed by: for each server as few as they fit
// in, each row once. Floor: ps/client. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "csrc/ps/client/row_order.h"
#include "csrc/ps/wire/push.h"

namespace rdmacoll::ps {

class RowBodies {
 public:
  // dim: floats of a row. order and ids outlive it.
  RowBodies(const RowOrder& order, std::span<const uint64_t> ids, uint64_t dim, PushAs as,
            const Rates& rates)
      : order_(order), ids_(ids), dim_(dim), as_(as), rates_(rates) {}

  struct Row {  // of one id: where it is in the order's rows
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  struct Body {
    ServerId server = kNoServer;
    std::vector<PushPart> parts{};
    std::vector<Row> rows{};
  };
  // nullopt: there are no more.
  std::optional<Body> next();
  uint64_t bytes(const Body& body) const;
  // values: all that were given, by their places there.
  void write(const Body& body, const float* values, std::byte* to) const;

 private:
  const RowOrder& order_;
  const std::span<const uint64_t> ids_;
  const uint64_t dim_;
  const PushAs as_;
  const Rates rates_;
  size_t run_ = 0;    // of the order's, that is next
  uint32_t row_ = 0;  // of its rows, likewise
};

}  // namespace rdmacoll::ps
