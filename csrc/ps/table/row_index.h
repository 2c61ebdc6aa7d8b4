// RowIndex: ids to the places of their rows, with linear probing: the look for an id touches one
// cache line or two. Ids are never taken out. Its memory can be read by workers
// (row_directory.h). Floor: ps/table. Thread: one at a time.
#pragma once

#include <cstdint>
#include <span>

#include "csrc/ps/table/row_directory.h"
#include "csrc/ps/table/row_memory.h"
#include "csrc/ps/table/shard_place.h"

namespace rdmacoll::ps {

class RowIndex {
 public:
  // The memory outlives it.
  explicit RowIndex(RowMemory& memory) : memory_(memory) {}
  ~RowIndex() {
    if (!places_.empty()) memory_.give_back(place_, places_.size_bytes());
  }
  RowIndex(const RowIndex&) = delete;
  RowIndex& operator=(const RowIndex&) = delete;

  // Where it is, and how many places it has: none at first.
  const ShardPlace& place() const { return place_; }
  uint64_t places() const { return places_.size(); }
  // Has the processor fetch what a look for the id touches first.
  void prefetch(uint64_t id) const {
    if (!places_.empty()) __builtin_prefetch(&places_[first_index_place(id, places_.size())]);
  }
  // Of the id's row; 0: there is none.
  uint64_t find(uint64_t id) const {
    return places_.empty() ? 0 : look_for(id).row.load(std::memory_order_relaxed);
  }
  // row: of an id that is not there.
  void add(uint64_t id, uint64_t row) {
    if (2 * (size_ + 1) > places_.size()) grow();
    ++size_;
    put(id, row);
  }

 private:
  // That of the id, or the free one where it belongs.
  IndexPlace& look_for(uint64_t id) const {
    uint64_t at = first_index_place(id, places_.size());
    while (places_[at].row.load(std::memory_order_relaxed) != 0 &&
           places_[at].id.load(std::memory_order_relaxed) != id) {
      at = (at + 1) & (places_.size() - 1);
    }
    return places_[at];
  }
  void put(uint64_t id, uint64_t row) {
    IndexPlace& place = look_for(id);
    place.id.store(id, std::memory_order_relaxed);
    place.row.store(row, std::memory_order_relaxed);
  }
  void grow() {
    const std::span<IndexPlace> before = places_;
    const ShardPlace where = place_;
    const uint64_t count = before.empty() ? 16 : 2 * before.size();
    place_ = memory_.take(count * sizeof(IndexPlace));
    places_ = {reinterpret_cast<IndexPlace*>(memory_.at(place_)), count};
    for (IndexPlace& place : places_) place.row.store(0, std::memory_order_relaxed);
    for (const IndexPlace& place : before) {
      const uint64_t row = place.row.load(std::memory_order_relaxed);
      if (row != 0) put(place.id.load(std::memory_order_relaxed), row);
    }
    if (!before.empty()) memory_.give_back(where, before.size_bytes());
  }

  RowMemory& memory_;
  ShardPlace place_{};
  std::span<IndexPlace> places_{};
  uint64_t size_ = 0;
};

}  // namespace rdmacoll::ps
