// DenseShard. Floor: ps/table. Thread: one at a time.
#include "csrc/ps/table/dense_shard.h"

#include <algorithm>
#include <array>

#include "csrc/base/check.h"

namespace rdmacoll::ps {

DenseShard::DenseShard(const TableSpec& spec, uint64_t shard, std::byte* memory)
    : versions_(memory, spec.shard_elements(shard) * sizeof(float)),
      steps_(spec),
      state_(states_per_element(steps_.optimizer()),
             std::vector<float>(elements(), initial_state(steps_.optimizer()))) {
  versions_.begin();  // zeros
  versions_.complete();
}

void DenseShard::load_values(uint64_t pushes, std::span<const float> values) {
  RDMACOLL_CHECK(values.size() == elements());
  std::ranges::copy(values, reinterpret_cast<float*>(versions_.begin()));
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
  const std::span<const float> now = values();
  auto* const next = reinterpret_cast<float*>(versions_.begin());
  std::ranges::copy(now, next);
  std::ranges::copy(arrays.first(count), next + first);
  for (size_t i = 0; i < state_.size(); ++i) {
    std::ranges::copy(arrays.subspan((i + 1) * count, count), state_[i].begin() + first);
  }
  versions_.complete();
  pushes_ = pushes;
}

void DenseShard::push(PushAs as, uint64_t first, std::span<const float> values) {
  RDMACOLL_CHECK(first <= elements() && values.size() <= elements() - first);
  const std::span<const float> now = this->values();
  auto* const next = reinterpret_cast<float*>(versions_.begin());
  const uint64_t end = first + values.size();
  std::copy(now.begin(), now.begin() + first, next);
  std::copy(now.begin() + end, now.end(), next + end);
  if (as == PushAs::Assigned) {
    std::ranges::copy(values, next + first);
    for (auto& state : state_) {
      std::fill_n(state.begin() + first, values.size(), initial_state(steps_.optimizer()));
    }
    if (values.size() == elements()) pushes_ = 0;
  } else {
    std::array<float*, 2> state{};
    for (size_t i = 0; i < state_.size(); ++i) state[i] = state_[i].data() + first;
    const void* const source = values.data();
    optimize(steps_.of(++pushes_), {&source, 1}, now.data() + first, next + first, state.data(),
             values.size());
  }
  versions_.complete();
}

}  // namespace rdmacoll::ps
