// initial_values. Floor: ps/table. Thread: any.
#include "csrc/ps/table/initial_values.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rdmacoll::ps {
namespace {

// From 0 to below 1, of the 53 bits that a double has.
double unit(uint64_t seed, uint64_t id, uint64_t which) {
  const uint64_t bits = mixed(mixed(mixed(seed) + id) + which);
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

// Box and Muller, A note on the generation of random normal deviates, 1958.
double normal(uint64_t seed, uint64_t id, uint64_t which) {
  const double radius = std::sqrt(-2 * std::log1p(-unit(seed, id, 2 * which)));
  return radius * std::cos(2 * std::numbers::pi * unit(seed, id, 2 * which + 1));
}

}  // namespace

void make_row(const Initial& initial, uint64_t id, std::span<float> row) {
  if (initial.kind == Initial::Kind::Constant) {
    std::ranges::fill(row, static_cast<float>(initial.first));
    return;
  }
  for (uint64_t i = 0; i < row.size(); ++i) {
    const double value =
        initial.kind == Initial::Kind::Uniform
            ? initial.first + (initial.second - initial.first) * unit(initial.seed, id, i)
            : initial.first + initial.second * normal(initial.seed, id, i);
    row[i] = static_cast<float>(value);
  }
}

}  // namespace rdmacoll::ps
