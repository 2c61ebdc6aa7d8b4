// DenseShard. Floor: ps/table. Thread: one at a time.
#include "csrc/ps/table/dense_shard.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "csrc/base/check.h"

namespace rdmacoll::ps {

DenseShard::DenseShard(const TableSpec& spec, uint64_t shard, ShardMemoryPiece memory)
    : memory_(memory),
      versions_(memory.data, spec.shard_elements(shard) * sizeof(float)),
      steps_(spec),
      has_values_(memory.is_zeroed),
      state_(states_per_element(steps_.optimizer())),
      stores_(spec.stores()),
      is_sync_(spec.pace && spec.pace->is_sync),
      paced_elements_(spec.pace ? spec.paced_elements(shard) : 0) {
  for (auto& state : state_) state.assign(elements(), initial_state(steps_.optimizer()));
  if (spec.pace) pace_.emplace();
  if (!memory.is_zeroed) std::memset(memory.data, 0, kStatementBytes);
  versions_.hide();
  versions_.begin();  // zeros
  versions_.complete();
}

// What is written as a whole first, as files are, is never zero.
void DenseShard::write_zeros() const {
  std::memset(const_cast<std::byte*>(versions_.newest()), 0, versions_.bytes());
  has_values_ = true;
}

void DenseShard::load_values(uint64_t pushes, std::span<const float> values) {
  RDMACOLL_CHECK(values.size() == elements());
  std::ranges::copy(values, begin_change(0, elements()));
  versions_.complete();
  pushes_ = pushes;
}

void DenseShard::load_state(size_t which, std::span<const float> state) {
  RDMACOLL_CHECK(which < state_.size() && state.size() == elements());
  std::ranges::copy(state, state_[which].begin());
}

void DenseShard::restore(uint64_t first, uint64_t pushes, std::span<const float> arrays) {
  const uint64_t count = arrays.size() / (1 + state_.size());
  RDMACOLL_CHECK(first <= elements() && count <= elements() - first);
  std::ranges::copy(arrays.first(count), begin_change(first, first + count));
  for (size_t i = 0; i < state_.size(); ++i) {
    std::ranges::copy(arrays.subspan((i + 1) * count, count), state_[i].begin() + first);
  }
  versions_.complete();
  pushes_ = pushes;
}

// The next version, with all but the range as it is now.
float* DenseShard::begin_change(uint64_t first, uint64_t end) {
  const bool is_whole = first == 0 && end == elements();
  if (is_whole) has_values_ = true;
  const std::span<const float> now = values();
  auto* const next = reinterpret_cast<float*>(versions_.begin());
  std::copy(now.begin(), now.begin() + first, next);
  std::copy(now.begin() + end, now.end(), next + end);
  return next + first;
}

void DenseShard::apply(const Gradients& gradients, uint64_t first, uint64_t count,
                       const Rates& rates) {
  const float* const now = values().data() + first;
  float* const next = begin_change(first, first + count);
  std::array<float*, 2> state{};
  for (size_t i = 0; i < state_.size(); ++i) state[i] = state_[i].data() + first;
  optimize(steps_.of(++pushes_, rates), gradients, now, next, state.data(), count, stores_);
  versions_.complete();
}

void DenseShard::push(PushAs as, uint64_t first, std::span<const float> values,
                      const Rates& rates) {
  RDMACOLL_CHECK(first <= elements() && values.size() <= elements() - first);
  if (as == PushAs::Gradient) {
    const void* const source = values.data();
    return apply({&source, 1}, first, values.size(), rates);
  }
  std::ranges::copy(values, begin_change(first, first + values.size()));
  for (auto& state : state_) {
    std::fill_n(state.begin() + first, values.size(), initial_state(steps_.optimizer()));
  }
  if (values.size() == elements()) pushes_ = 0;
  versions_.complete();
}

void DenseShard::begin_generation(Generation generation, uint32_t step) {
  RDMACOLL_CHECK(pace_.has_value());
  pace_->begin(generation, is_sync_ ? pace_->slowest() : step);
}

void DenseShard::push_step(WorkerStep step, const StepGradient& gradient) {
  const std::span<const float> values = gradient.values;
  RDMACOLL_CHECK(pace_.has_value() && values.size() == paced_elements_);
  if (!pace_->is_of_it(step)) return;
  if (!pace_->note(step)) return;
  if (!is_sync_) return push(PushAs::Gradient, 0, values, gradient.rates);
  if (!pace_->is_last(step.number)) return pace_->keep(step, gradient);
  const auto sources = pace_->sources(step, values);
  apply({sources.data(), sources.size(), static_cast<uint32_t>(sources.size())}, 0, values.size(),
        pace_->rates(step, gradient.rates));
  pace_->forget(step.number);
}

}  // namespace rdmacoll::ps
