// ShardMemory: where a server gets the memory of dense shards and of rows, and the limit of what it
// has for all tables. Floor: ps/server. Thread: the server's.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/status.h"
#include "csrc/ps/table/shard_place.h"
#include "csrc/ps/wire/record.h"

namespace rdmacoll::ps {

class ShardMemory {
 public:
  explicit ShardMemory(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  virtual ~ShardMemory() = default;

  // Of dense shards, whose state comes from the heap, and is counted. It is there as long as this.
  // System: there is no room for so much.
  Result<ShardMemoryPiece> take(uint32_t table, uint64_t bytes, uint64_t state_bytes) {
    const uint64_t all = padded(bytes) + state_bytes;
    if (is_full() || all > limit_bytes_ - used_bytes()) {
      return no_room(std::to_string(all) + " more bytes of a dense table");
    }
    auto made = make(table, padded(bytes));
    if (made.ok()) dense_bytes_ += all;
    return made;
  }
  // For rows, without regard to the limit. What they use of it RowMemory counts in row_bytes().
  Result<ShardMemoryPiece> take_for_rows(uint32_t table, uint64_t bytes) {
    return make(table, padded(bytes));
  }
  uint64_t& row_bytes() { return row_bytes_; }

  uint64_t used_bytes() const { return dense_bytes_ + row_bytes_; }
  bool is_full() const { return used_bytes() >= limit_bytes_; }
  Status no_room(const std::string& what) const {
    return Status(StatusCode::System,
                  "the server has no room for " + what + ": " + std::to_string(used_bytes()) +
                      " of " + std::to_string(limit_bytes_) +
                      " bytes are used; start more servers, or raise --server-memory");
  }

 private:
  virtual Result<ShardMemoryPiece> make(uint32_t table, uint64_t bytes) = 0;

  const uint64_t limit_bytes_;
  uint64_t dense_bytes_ = 0;
  uint64_t row_bytes_ = 0;
};

}  // namespace rdmacoll::ps
