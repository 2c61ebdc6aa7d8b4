// ServerTable: what a server has of a table. Floor: ps/server. Thread: the server's.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "csrc/ps/server/shard_memory.h"
#include "csrc/ps/table/dense_shard.h"
#include "csrc/ps/table/row_memory.h"
#include "csrc/ps/table/row_shard.h"
#include "csrc/ps/table/steps.h"
#include "csrc/ps/table/table_spec.h"

namespace rdmacoll::ps {

class ServerTable {
 public:
  // The memory outlives it.
  ServerTable(uint32_t id, TableSpec spec, ShardMemory& memory)
      : id_(id),
        spec_(std::move(spec)),
        memory_(memory),
        steps_(spec_),
        row_memory_([this](uint64_t bytes) { return memory_.take_for_rows(id_, bytes); },
                    memory.row_bytes()) {}
  ServerTable(const ServerTable&) = delete;
  ServerTable& operator=(const ServerTable&) = delete;

  uint32_t id() const { return id_; }
  const TableSpec& spec() const { return spec_; }
  // Made when it is first looked for. System: there is no memory for it.
  Result<DenseShard*> dense(uint64_t shard) {
    const auto known = dense_.find(shard);
    if (known != dense_.end()) return &known->second;
    auto taken = memory_.take(id_, DenseShard::memory_bytes(spec_, shard),
                              DenseShard::state_bytes(spec_, shard));
    if (!taken.ok()) return taken.status();
    return &dense_.emplace(shard, DenseShard(spec_, shard, taken.value())).first->second;
  }
  // It is made.
  DenseShard& known_dense(uint64_t shard) { return dense_.at(shard); }
  RowShard& rows(uint32_t bucket) {
    auto& shard = rows_[bucket];
    if (shard == nullptr) shard = std::make_unique<RowShard>(spec_, bucket, steps_, row_memory_);
    return *shard;
  }

  std::map<uint64_t, DenseShard>& all_dense() { return dense_; }
  const std::map<uint64_t, DenseShard>& all_dense() const { return dense_; }
  // nullptr: there are none.
  RowShard* find_rows(uint32_t bucket) { return rows_[bucket].get(); }
  const RowShard* find_rows(uint32_t bucket) const { return rows_[bucket].get(); }
  // Where workers find all of them.
  const ShardPlace& rows_place() const { return row_memory_.directory_place(); }
  void forget_rows(uint32_t bucket) { rows_[bucket] = nullptr; }

  uint64_t count_rows() const {
    uint64_t rows = 0;
    for (const auto& shard : rows_) rows += shard == nullptr ? 0 : shard->rows();
    return rows;
  }
  uint64_t count_elements() const {
    uint64_t elements = 0;
    for (const auto& [number, shard] : dense_) elements += shard.elements();
    return elements;
  }

 private:
  const uint32_t id_;
  const TableSpec spec_;
  ShardMemory& memory_;
  Steps steps_;  // of rows
  RowMemory row_memory_;
  std::map<uint64_t, DenseShard> dense_;
  std::array<std::unique_ptr<RowShard>, kBuckets> rows_{};
};

}  // namespace rdmacoll::ps
