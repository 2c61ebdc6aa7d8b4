// Row ranges. Floor: remote. Thread: values.
#include "csrc/remote/row_ranges.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

namespace rdmacoll {
namespace {

template <typename IsWanted>
std::vector<MovedRange> ranges_of(const RowLayout& layout, std::span<const int64_t> rows,
                                  IsWanted is_wanted) {
  std::vector<MovedRange> ranges;
  if (layout.row_bytes == 0) return ranges;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!is_wanted(i)) continue;
    const MovedRange row{layout.offset + static_cast<uint64_t>(rows[i]) * layout.row_bytes,
                         i * layout.row_bytes, layout.row_bytes};
    MovedRange* const last = ranges.empty() ? nullptr : &ranges.back();
    if (last != nullptr && last->theirs + last->bytes == row.theirs &&
        last->mine + last->bytes == row.mine) {
      last->bytes += row.bytes;
    } else {
      ranges.push_back(row);
    }
  }
  return ranges;
}

}  // namespace

std::vector<MovedRange> ranges_to_read(const RowLayout& layout, std::span<const int64_t> rows) {
  return ranges_of(layout, rows, [](size_t) { return true; });
}

std::vector<MovedRange> ranges_to_write(const RowLayout& layout, std::span<const int64_t> rows) {
  const bool ascend = std::ranges::adjacent_find(rows, std::greater_equal()) == rows.end();
  if (ascend) return ranges_to_read(layout, rows);
  std::vector<bool> is_last(rows.size());
  std::unordered_set<int64_t> come_later;
  come_later.reserve(rows.size());
  for (size_t i = rows.size(); i-- > 0;) is_last[i] = come_later.insert(rows[i]).second;
  return ranges_of(layout, rows, [&](size_t i) { return is_last[i]; });
}

}  // namespace rdmacoll
