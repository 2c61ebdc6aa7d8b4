// RowShard: the rows of a table of rows that are in one bucket, with the optimizer's state beside
// them. A row is made when it is first looked for. Workers can read them once they are shown.
// Floor: ps/table. Thread: one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "csrc/ps/table/push_as.h"
#include "csrc/ps/table/row_directory.h"
#include "csrc/ps/table/row_index.h"
#include "csrc/ps/table/row_memory.h"
#include "csrc/ps/table/steps.h"
#include "csrc/ps/table/table_spec.h"

namespace rdmacoll::ps {

class RowShard {
 public:
  // All outlive it; the steps and the memory are those of the table, for all its shards.
  RowShard(const TableSpec& spec, uint32_t bucket, Steps& steps, RowMemory& memory);
  // Nobody finds them there any more.
  ~RowShard();
  RowShard(const RowShard&) = delete;
  RowShard& operator=(const RowShard&) = delete;

  uint64_t rows() const { return places_.size(); }
  bool has(uint64_t id) const { return index_.find(id) != 0; }
  // Where the row is, which stays so. It is made if it is not there.
  uint64_t place_of(uint64_t id);
  // The values of a row at its place.
  std::span<const float> values(uint64_t place) const { return {floats(place), spec_.dim}; }
  // Each has the processor fetch what is touched by place_of(), and by values().
  void prefetch_place(uint64_t id) const { index_.prefetch(id); }
  void prefetch_values(uint64_t place) const;
  // Whether workers find the rows. They do not until they are shown.
  bool is_shown() const { return shown_.index.load(std::memory_order_relaxed) != 0; }
  void show();
  void hide();
  // Of a row, all that is kept: values, then state.
  uint64_t stride() const { return stride_; }
  struct Saved {
    uint64_t id = 0;
    uint64_t pushes = 0;
    std::span<const float> floats{};
  };
  Saved save(uint64_t place) const;
  Saved find(uint64_t id) { return save(place_of(id)); }
  // Of all rows, in the order in which they were made.
  std::span<const uint64_t> places() const { return places_; }
  // As another server had it.
  void load(const Saved& saved);
  // values: a row of them. rates: of a gradient.
  void push(PushAs as, uint64_t id, const float* values, const Rates& rates);

 private:
  // Where its index is, which is another place once it has grown.
  void publish();
  RowHead& head(uint64_t place) const {
    return *reinterpret_cast<RowHead*>(memory_.at(unpacked(place)));
  }
  float* floats(uint64_t place) const { return reinterpret_cast<float*>(&head(place) + 1); }
  uint64_t row_bytes() const;

  const TableSpec& spec_;
  Steps& steps_;
  RowMemory& memory_;
  BucketRows& shown_;
  const uint64_t stride_;  // floats of a row: values, the state of its elements, its own state
  RowIndex index_;
  std::vector<uint64_t> places_;
};

}  // namespace rdmacoll::ps
