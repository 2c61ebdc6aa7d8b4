// RowShard: the rows of a table of rows that are in one bucket, with the optimizer's state beside
// them. A row is made when it is first looked for. Floor: ps/table. Thread: one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "csrc/ps/table/push_as.h"
#include "csrc/ps/table/row_index.h"
#include "csrc/ps/table/row_memory.h"
#include "csrc/ps/table/steps.h"
#include "csrc/ps/table/table_spec.h"

namespace rdmacoll::ps {

class RowShard {
 public:
  // All outlive it; the steps are those of the table, for all its shards, and the memory counts
  // what it takes.
  RowShard(const TableSpec& spec, Steps& steps, RowMemory& memory);
  ~RowShard() { memory_.bytes -= counted_bytes_; }
  RowShard(const RowShard&) = delete;
  RowShard& operator=(const RowShard&) = delete;

  uint64_t rows() const { return index_.size(); }
  bool has(uint64_t id) const { return index_.has(id); }
  // Where the row is, which stays so. It is made if it is not there.
  uint64_t place_of(uint64_t id);
  // The values of a row at its place, until another one is made.
  std::span<const float> values(uint64_t place) { return {at(place), spec_.dim}; }
  // Each has the processor fetch what is touched by place_of(), and by values().
  void prefetch_place(uint64_t id) const { index_.prefetch(id); }
  void prefetch_values(uint64_t place) const;
  // Of a row, all that is kept: values, then state.
  uint64_t stride() const { return stride_; }
  struct Saved {
    uint64_t id = 0;
    uint64_t pushes = 0;
    std::span<const float> floats{};
  };
  // place: below rows().
  Saved save(uint64_t place) const;
  Saved find(uint64_t id) { return save(place_of(id)); }
  std::span<const uint64_t> ids() const { return ids_; }
  // As another server had it.
  void load(const Saved& saved);
  // values: a row of them.
  void push(PushAs as, uint64_t id, const float* values);

 private:
  void count_memory();
  float* at(uint64_t place) { return floats_.data() + place * stride_; }

  const TableSpec& spec_;
  Steps& steps_;
  RowMemory& memory_;
  const uint64_t stride_;  // floats of a row: values, the state of its elements, its own state
  RowIndex index_;
  std::vector<float> floats_;
  std::vector<uint32_t> pushes_;  // by place
  std::vector<uint64_t> ids_;     // likewise
  uint64_t counted_bytes_ = 0;
};

}  // namespace rdmacoll::ps
