// initial_values: what a row is before anybody has pushed to it. It follows from the table's seed
// and the row's id alone, so every server makes the same row, whenever it is asked for it first.
// Floor: ps/table. Thread: any.
#pragma once

#include <cstdint>
#include <span>

#include "csrc/ps/table/table_spec.h"

namespace rdmacoll::ps {

void make_row(const Initial& initial, uint64_t id, std::span<float> row);

}  // namespace rdmacoll::ps
