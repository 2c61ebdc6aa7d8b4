// RowShard. Floor: ps/table. Thread: one at a time.
#include "csrc/ps/table/row_shard.h"

#include <algorithm>
#include <array>

#include "csrc/base/limits.h"
#include "csrc/ps/table/initial_values.h"
#include "csrc/ps/table/saved.h"

namespace rdmacoll::ps {

RowShard::RowShard(const TableSpec& spec, uint32_t bucket, Steps& steps, RowMemory& memory)
    : spec_(spec),
      steps_(steps),
      memory_(memory),
      shown_(memory.directory()[bucket]),
      stride_(row_floats(spec)),
      index_(memory) {}

RowShard::~RowShard() {
  hide();
  for (const uint64_t place : places_) memory_.give_back(unpacked(place), row_bytes());
  memory_.count(-static_cast<int64_t>(places_.capacity() * sizeof(places_[0])));
}

uint64_t RowShard::row_bytes() const {
  const uint64_t bytes = sizeof(RowHead) + stride_ * sizeof(float);
  return (bytes + alignof(RowHead) - 1) / alignof(RowHead) * alignof(RowHead);
}

uint64_t RowShard::place_of(uint64_t id) {
  const uint64_t known = index_.find(id);
  if (known != 0) return known;
  const uint64_t before = places_.capacity();
  const uint64_t place = packed(memory_.take(row_bytes()));
  places_.push_back(place);
  memory_.count(static_cast<int64_t>((places_.capacity() - before) * sizeof(place)));
  const RowChange change(shown_);
  head(place) = {id, 0};
  std::fill_n(floats(place), stride_, initial_state(steps_.optimizer()));
  make_row(spec_.initial, id, {floats(place), spec_.dim});
  index_.add(id, place);
  if (is_shown()) publish();
  return place;
}

void RowShard::show() {
  const RowChange change(shown_);
  publish();
}

void RowShard::hide() {
  const RowChange change(shown_);
  shown_.index.store(0, std::memory_order_relaxed);
}

void RowShard::publish() {
  shown_.index.store(packed(index_.place()), std::memory_order_relaxed);
  shown_.index_places.store(index_.places(), std::memory_order_relaxed);
}

void RowShard::prefetch_values(uint64_t place) const {
  const float* const begin = floats(place);
  constexpr uint64_t kLineFloats = kLineBytes / sizeof(float);
  for (uint64_t i = 0; i < spec_.dim; i += kLineFloats) __builtin_prefetch(begin + i);
}

RowShard::Saved RowShard::save(uint64_t place) const {
  const RowHead& row = head(place);
  return {row.id, row.pushes, {floats(place), stride_}};
}

void RowShard::load(const Saved& saved) {
  const uint64_t place = place_of(saved.id);
  const RowChange change(shown_);
  std::ranges::copy(saved.floats, floats(place));
  head(place).pushes = saved.pushes;
}

void RowShard::push(PushAs as, uint64_t id, const float* values, const Rates& rates) {
  const uint64_t place = place_of(id);
  const RowChange change(shown_);
  float* const row = floats(place);
  float* const state = row + spec_.dim;
  if (as == PushAs::Assigned) {
    std::copy_n(values, spec_.dim, row);
    std::fill(state, row + stride_, initial_state(steps_.optimizer()));
    head(place).pushes = 0;
    return;
  }
  const OptimizerStep& step = steps_.of(++head(place).pushes, rates);
  const void* const source = values;
  if (step.kind == OptimizerKind::RowwiseAdagrad) {
    optimize_row(step, {&source, 1}, row, row, state, spec_.dim);
    return;
  }
  const std::array<float*, 2> states{state, state + spec_.dim};
  optimize(step, {&source, 1}, row, row, states.data(), spec_.dim);
}

}  // namespace rdmacoll::ps
