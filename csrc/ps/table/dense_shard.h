// DenseShard: a range of a dense table at a server: its values, in versions that can be read
// without the server (statement.h), and the optimizer's state beside them. Each push makes a
// version. Floor: ps/table. Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "csrc/ps/table/pace_steps.h"
#include "csrc/ps/table/push_as.h"
#include "csrc/ps/table/shard_place.h"
#include "csrc/ps/table/steps.h"
#include "csrc/ps/table/table_spec.h"
#include "csrc/remote/versions.h"

namespace rdmacoll::ps {

class DenseShard {
 public:
  // memory: of memory_bytes(), and longer there than this.
  DenseShard(const TableSpec& spec, uint64_t shard, ShardMemoryPiece memory);
  static uint64_t memory_bytes(const TableSpec& spec, uint64_t shard) {
    return versions_bytes(spec.shard_elements(shard) * sizeof(float));
  }
  // Of the optimizer's state, which it has besides.
  static uint64_t state_bytes(const TableSpec& spec, uint64_t shard) {
    const uint64_t states = spec.optimizer ? states_per_element(*spec.optimizer) : 0;
    return states * spec.shard_elements(shard) * sizeof(float);
  }

  uint64_t elements() const { return versions_.bytes() / sizeof(float); }
  std::span<const float> values() const {
    if (!has_values_) write_zeros();
    return {reinterpret_cast<const float*>(versions_.newest()), elements()};
  }
  const Optimizer& optimizer() const { return steps_.optimizer(); }
  const ShardMemoryPiece& memory() const { return memory_; }
  const ShardPlace& place() const { return memory_.place; }
  // Whether others find its versions there. They do not until they are shown.
  bool is_shown() const { return !versions_.is_hidden(); }
  void show() {
    if (!has_values_) write_zeros();
    versions_.show();
  }
  void hide() { versions_.hide(); }
  // How many pushes the optimizer has seen, and its state: as much as the values, each.
  uint64_t pushes() const { return pushes_; }
  const std::vector<std::vector<float>>& state() const { return state_; }
  // All of it, as another server had it. As many as elements() each.
  void load_values(uint64_t pushes, std::span<const float> values);
  void load_state(size_t which, std::span<const float> state);
  // Likewise a range of it: of the values and of each state as many.
  void restore(uint64_t first, uint64_t pushes, std::span<const float> arrays);
  // The range is in the shard. rates: of a gradient.
  void push(PushAs as, uint64_t first, std::span<const float> values, const Rates& rates);

  // --- of a table with a pace; null: it has none
  PaceSteps* pace() { return pace_ ? &*pace_ : nullptr; }
  const PaceSteps* pace() const { return pace_ ? &*pace_ : nullptr; }
  // Whether it may be kept as a gradient of a step that is not whole.
  bool can_gather(uint32_t rank, uint64_t elements) const {
    return is_sync_ && rank < pace_->reached().size() && elements == paced_elements_;
  }
  // step: that all workers have made, where each steps for itself. Else it is the last one that is
  // whole here: so each step is made once in all shards.
  void begin_generation(Generation generation, uint32_t step);
  // A worker's gradient of the shard's paced_elements(). One of an earlier generation, or that it
  // has pushed before, changes nothing.
  void push_step(WorkerStep step, const StepGradient& gradient);

 private:
  void write_zeros() const;
  float* begin_change(uint64_t first, uint64_t end);
  void apply(const Gradients& gradients, uint64_t first, uint64_t count, const Rates& rates);

  const ShardMemoryPiece memory_;
  Versions versions_;
  Steps steps_;
  mutable bool has_values_;  // false: they are zeros, and are not written yet
  uint64_t pushes_ = 0;
  std::vector<std::vector<float>> state_;
  const Stores stores_;  // of new versions
  const bool is_sync_;
  const uint64_t paced_elements_;
  std::optional<PaceSteps> pace_{};
};

}  // namespace rdmacoll::ps
