// RowMemory: memory for the rows of a table at a server, and for their indices, that workers can
// read. What is given back is used again for rows and indices of that table. It counts what is in
// use. Floor: ps/table. Thread: the server's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/ps/table/row_directory.h"
#include "csrc/ps/table/shard_place.h"

namespace rdmacoll::ps {

class RowMemory {
 public:
  using More = std::function<Result<ShardMemoryPiece>(uint64_t bytes)>;
  // more: takes memory that outlives this; used_bytes: of the rows of all tables.
  RowMemory(More more, uint64_t& used_bytes) : more_(std::move(more)), used_bytes_(used_bytes) {}
  ~RowMemory() { used_bytes_ -= counted_bytes_; }
  RowMemory(const RowMemory&) = delete;
  RowMemory& operator=(const RowMemory&) = delete;

  // This and take() throw where there is no memory: a push that has its number cannot be refused,
  // so the server ends, and its backups take over.
  RowDirectory& directory();
  const ShardPlace& directory_place() const { return directory_place_; }
  // For a row, or for an index of so many places. Its bytes are any.
  ShardPlace take(uint64_t bytes);
  void give_back(const ShardPlace& place, uint64_t bytes);
  std::byte* at(const ShardPlace& place) const { return bases_[place.extent] + place.offset; }
  // Also memory of the heap that belongs to rows.
  void count(int64_t bytes) {
    counted_bytes_ += static_cast<uint64_t>(bytes);
    used_bytes_ += static_cast<uint64_t>(bytes);
  }

 private:
  static constexpr uint64_t kAtOnceBytes = 64 << 10;
  ShardMemoryPiece more(uint64_t bytes);

  const More more_;
  uint64_t& used_bytes_;
  uint64_t counted_bytes_ = 0;
  RowDirectory* directory_ = nullptr;
  ShardPlace directory_place_{};
  ShardMemoryPiece rest_{};  // of what was taken last
  uint64_t rest_bytes_ = 0;
  std::vector<std::byte*> bases_;                       // by extent
  std::map<uint64_t, std::vector<ShardPlace>> spares_;  // by their bytes
};

}  // namespace rdmacoll::ps
