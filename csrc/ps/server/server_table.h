// ServerTable: what a server has of a table. Floor: ps/server. Thread: the server's.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "csrc/base/printable.h"
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
        row_memory_(
            std::in_place, [this](uint64_t bytes) { return memory_.take_for_rows(id_, bytes); },
            memory.row_bytes()) {}
  ServerTable(const ServerTable&) = delete;
  ServerTable& operator=(const ServerTable&) = delete;

  uint32_t id() const { return id_; }
  const TableSpec& spec() const { return spec_; }
  // It has nothing any more, and what is pushed to it is counted alone. What this returns is as of
  // ShardMemory::let_go().
  std::shared_ptr<void> drop() {
    is_dropped_ = true;
    rows_.reset();
    dense_.clear();
    row_memory_.reset();
    return memory_.let_go(id_);
  }
  // Then nothing below is asked of it that makes something.
  bool is_dropped() const { return is_dropped_; }
  // InvalidArgument: it was dropped.
  Status check_there() const {
    if (!is_dropped_) return Status();
    return Status(StatusCode::InvalidArgument,
                  "table '" + printable(spec_.name) + "' was dropped; make it anew with init()");
  }
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
    if (rows_ == nullptr) rows_ = std::make_unique<RowShards>();
    auto& shard = (*rows_)[bucket];
    if (shard == nullptr) shard = std::make_unique<RowShard>(spec_, bucket, steps_, *row_memory_);
    return *shard;
  }

  std::map<uint64_t, DenseShard>& all_dense() { return dense_; }
  const std::map<uint64_t, DenseShard>& all_dense() const { return dense_; }
  // nullptr: there are none.
  RowShard* find_rows(uint32_t bucket) const {
    return rows_ == nullptr ? nullptr : (*rows_)[bucket].get();
  }
  // Where workers find all of them.
  const ShardPlace& rows_place() const { return row_memory_->directory_place(); }
  // Gradients of steps in these buckets are not where workers have them any more, but here: the new
  // primary may have copies, and tells workers that theirs are done.
  void own_gradients(const std::bitset<kBuckets>& buckets) {
    for (auto& [number, shard] : dense_) {
      if (shard.pace() != nullptr && buckets[bucket_of_shard(id_, number)]) shard.pace()->own();
    }
  }
  void forget_rows(uint32_t bucket) {
    if (rows_ != nullptr) (*rows_)[bucket] = nullptr;
  }
  // What is in these buckets is not here any more.
  void forget(const std::bitset<kBuckets>& buckets) {
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      if (buckets[bucket]) forget_rows(bucket);
    }
    for (auto at = dense_.begin(); at != dense_.end();) {
      auto& [number, shard] = *at;
      if (!buckets[bucket_of_shard(id_, number)]) {
        ++at;
        continue;
      }
      shard.hide();
      memory_.give_back(id_, shard.memory(), DenseShard::memory_bytes(spec_, number),
                        DenseShard::state_bytes(spec_, number));
      at = dense_.erase(at);
    }
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
  bool is_dropped_ = false;
  std::optional<RowMemory> row_memory_;
  std::map<uint64_t, DenseShard> dense_;
  // Of a table that has rows: there are many without, each part of a file one.
  using RowShards = std::array<std::unique_ptr<RowShard>, kBuckets>;
  std::unique_ptr<RowShards> rows_;
};

}  // namespace rdmacoll::ps
