// saved: all that is kept of a table, its values and its optimizer's state, in floats, as messages
// and snapshots have it. Before them lies how many pushes the optimizer has seen.
// Floor: ps/table. Thread: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "csrc/ps/table/push_as.h"
#include "csrc/ps/table/table_spec.h"
#include "csrc/reduce/optimizer.h"

namespace rdmacoll::ps {

// What the number of pushes takes.
inline constexpr uint64_t kCountFloats = sizeof(uint64_t) / sizeof(float);

inline uint64_t count_at(const void* from) {
  uint64_t count = 0;
  std::memcpy(&count, from, sizeof(count));
  return count;
}

// Of a dense table: that of the values, and those of the state.
inline uint64_t arrays_of(const TableSpec& spec) {
  return 1 + (spec.optimizer ? states_per_element(*spec.optimizer) : 0);
}
// Of a row: its values, the state of its elements, its own state.
inline uint64_t row_floats(const TableSpec& spec) {
  return spec.dim * arrays_of(spec) + (spec.optimizer ? states_per_row(*spec.optimizer) : 0);
}
inline uint64_t saved_row_floats(const TableSpec& spec) { return kCountFloats + row_floats(spec); }

// The floats of a push: those of each row or element, and those before all of them.
struct PushFloats {
  uint64_t before = 0;
  uint64_t each = 0;
};
inline PushFloats push_floats(const TableSpec& spec, PushAs as) {
  const bool is_restored = as == PushAs::Restored;
  if (as == PushAs::Generation) return {0, 0};
  if (spec.kind == TableKind::Rows) return {0, is_restored ? saved_row_floats(spec) : spec.dim};
  return is_restored ? PushFloats{kCountFloats, arrays_of(spec)} : PushFloats{0, 1};
}

}  // namespace rdmacoll::ps
