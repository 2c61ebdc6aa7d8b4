// Row ranges: rows of a tensor there, which go by their indices, as the ranges of one transfer.
// Neighbours that come one after the other are one range.
// Floor: remote. Thread: values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "csrc/engine/session/mover.h"

namespace rdmacoll {

// Of so many bytes each, counted from an offset there. Here they lie one behind the other.
struct RowLayout {
  uint64_t offset = 0;
  uint64_t row_bytes = 0;
};

std::vector<MovedRange> ranges_to_read(const RowLayout& layout, std::span<const int64_t> rows);
// Each row there comes once, with what is last here for it: ranges are written in any order.
std::vector<MovedRange> ranges_to_write(const RowLayout& layout, std::span<const int64_t> rows);

}  // namespace rdmacoll
