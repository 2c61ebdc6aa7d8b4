// ShardMemory: where a server gets the memory of dense shards and of rows, and the limit of what it
// has for all tables. Floor: ps/server. Thread: the server's.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/ps/table/shard_place.h"
#include "csrc/ps/wire/record.h"

namespace rdmacoll::ps {

class ShardMemory {
 public:
  // The clock outlives it.
  ShardMemory(uint64_t limit_bytes, const Clock& clock)
      : limit_bytes_(limit_bytes), clock_(clock) {}
  virtual ~ShardMemory() = default;

  // Of dense shards, whose state comes from the heap, and is counted. It is there as long as this,
  // or until it is given back, or the table lets go of it.
  // System: there is no room for so much.
  Result<ShardMemoryPiece> take(uint32_t table, uint64_t bytes, uint64_t state_bytes) {
    const uint64_t all = padded(bytes) + state_bytes;
    if (is_full() || all > limit_bytes_ - used_bytes()) {
      return no_room(std::to_string(all) + " more bytes of a dense table");
    }
    auto made = used_again(table, padded(bytes));
    if (made.data == nullptr) {
      auto more = make(table, padded(bytes));
      if (!more.ok()) return more.status();
      made = more.take();
    }
    dense_bytes_ += all;
    dense_bytes_of_[table] += all;
    return made;
  }
  // The same as was taken. Other shards of the table have it some time.
  void give_back(uint32_t table, const ShardMemoryPiece& piece, uint64_t bytes,
                 uint64_t state_bytes) {
    dense_bytes_ -= padded(bytes) + state_bytes;
    dense_bytes_of_[table] -= padded(bytes) + state_bytes;
    given_back_[{table, padded(bytes)}].emplace_back(piece, clock_.now_ns() + kUsedAgainNs);
  }
  // For rows, zeroed, and without regard to the limit. What they use of it RowMemory counts in
  // row_bytes().
  Result<ShardMemoryPiece> take_for_rows(uint32_t table, uint64_t bytes) {
    auto made = make(table, padded(bytes));
    if (made.ok() && !made.value().is_zeroed) std::memset(made.value().data, 0, padded(bytes));
    return made;
  }
  uint64_t& row_bytes() { return row_bytes_; }
  // All that the table has. It counts no more, and is freed with the last holder of what this
  // returns: in any thread, which may take until workers read it no more.
  std::shared_ptr<void> let_go(uint32_t table) {
    dense_bytes_ -= dense_bytes_of_[table];
    dense_bytes_of_.erase(table);
    std::erase_if(given_back_, [&](const auto& one) { return one.first.first == table; });
    return detach(table);
  }

  uint64_t used_bytes() const { return dense_bytes_ + row_bytes_; }
  bool is_full() const { return used_bytes() >= limit_bytes_; }
  Status no_room(const std::string& what) const {
    return Status(StatusCode::System,
                  "the server has no room for " + what + ": " + std::to_string(used_bytes()) +
                      " of " + std::to_string(limit_bytes_) +
                      " bytes are used; start more servers, or give them more memory (rdmarun: "
                      "--server-memory; rdmacoll ps serve: --memory)");
  }

 private:
  // Who reads a shard that is no more reads no other one in its place.
  static constexpr int64_t kUsedAgainNs = 3 * kLongestReadMs * 1'000'000;
  // Its data is nullptr: there is none.
  ShardMemoryPiece used_again(uint32_t table, uint64_t bytes) {
    auto& pieces = given_back_[{table, bytes}];
    if (pieces.empty() || clock_.now_ns() < pieces.front().second) return {};
    const ShardMemoryPiece piece = pieces.front().first;
    pieces.pop_front();
    std::memset(piece.data, 0, bytes);
    return piece;
  }
  virtual Result<ShardMemoryPiece> make(uint32_t table, uint64_t bytes) = 0;
  virtual std::shared_ptr<void> detach(uint32_t table) = 0;

  const uint64_t limit_bytes_;
  const Clock& clock_;
  uint64_t dense_bytes_ = 0;
  std::map<uint32_t, uint64_t> dense_bytes_of_;  // by table
  uint64_t row_bytes_ = 0;
  // By table and bytes, in the order in which they came: with when they may be used again.
  std::map<std::pair<uint32_t, uint64_t>, std::deque<std::pair<ShardMemoryPiece, int64_t>>>
      given_back_;
};

}  // namespace rdmacoll::ps
