// RowShard. Floor: ps/table. Thread: one at a time.
#include "csrc/ps/table/row_shard.h"

#include <algorithm>
#include <array>
#include <utility>

#include "csrc/base/limits.h"
#include "csrc/ps/table/initial_values.h"
#include "csrc/ps/table/saved.h"

namespace rdmacoll::ps {

RowShard::RowShard(const TableSpec& spec, Steps& steps, RowMemory& memory)
    : spec_(spec), steps_(steps), memory_(memory), stride_(row_floats(spec)) {}

uint64_t RowShard::place_of(uint64_t id) {
  const auto [place, is_new] = index_.find_or_add(id);
  if (!is_new) return place;
  floats_.resize(floats_.size() + stride_, initial_state(steps_.optimizer()));
  pushes_.push_back(0);
  ids_.push_back(id);
  count_memory();
  make_row(spec_.initial, id, {at(place), spec_.dim});
  return place;
}

void RowShard::count_memory() {
  const uint64_t bytes = index_.memory_bytes() + floats_.capacity() * sizeof(floats_[0]) +
                         pushes_.capacity() * sizeof(pushes_[0]) +
                         ids_.capacity() * sizeof(ids_[0]);
  memory_.bytes += bytes - std::exchange(counted_bytes_, bytes);
}

void RowShard::prefetch_values(uint64_t place) const {
  const float* const begin = floats_.data() + place * stride_;
  constexpr uint64_t kLineFloats = kLineBytes / sizeof(float);
  for (uint64_t i = 0; i < spec_.dim; i += kLineFloats) __builtin_prefetch(begin + i);
}

RowShard::Saved RowShard::save(uint64_t place) const {
  return {ids_[place], pushes_[place], {floats_.data() + place * stride_, stride_}};
}

void RowShard::load(const Saved& saved) {
  const uint64_t place = place_of(saved.id);
  std::ranges::copy(saved.floats, at(place));
  pushes_[place] = static_cast<uint32_t>(saved.pushes);
}

void RowShard::push(PushAs as, uint64_t id, const float* values) {
  const uint64_t place = place_of(id);
  float* const row = at(place);
  float* const state = row + spec_.dim;
  if (as == PushAs::Assigned) {
    std::copy_n(values, spec_.dim, row);
    std::fill(state, row + stride_, initial_state(steps_.optimizer()));
    pushes_[place] = 0;
    return;
  }
  const OptimizerStep& step = steps_.of(++pushes_[place]);
  const void* const source = values;
  if (step.kind == OptimizerKind::RowwiseAdagrad) {
    optimize_row(step, {&source, 1}, row, row, state, spec_.dim);
    return;
  }
  const std::array<float*, 2> states{state, state + spec_.dim};
  optimize(step, {&source, 1}, row, row, states.data(), spec_.dim);
}

}  // namespace rdmacoll::ps
