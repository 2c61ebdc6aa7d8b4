// RowMemory. Floor: ps/table. Thread: the server's.
#include "csrc/ps/table/row_memory.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

namespace rdmacoll::ps {

ShardMemoryPiece RowMemory::more(uint64_t bytes) {
  auto made = more_(bytes);
  if (!made.ok()) throw std::runtime_error("rows: " + made.status().message());
  const ShardMemoryPiece piece = made.take();
  if (bases_.size() <= piece.place.extent) bases_.resize(piece.place.extent + 1);
  bases_[piece.place.extent] = piece.data - piece.place.offset;
  return piece;
}

RowDirectory& RowMemory::directory() {
  if (directory_ != nullptr) return *directory_;
  const ShardMemoryPiece piece = more(sizeof(RowDirectory));
  count(sizeof(RowDirectory));
  directory_place_ = piece.place;
  directory_ = new (piece.data) RowDirectory();
  return *directory_;
}

ShardPlace RowMemory::take(uint64_t bytes) {
  count(static_cast<int64_t>(bytes));
  auto& spares = spares_[bytes];
  if (!spares.empty()) {
    const ShardPlace place = spares.back();
    spares.pop_back();
    return place;
  }
  if (rest_bytes_ < bytes) {
    rest_bytes_ = std::max(bytes, kAtOnceBytes);
    rest_ = more(rest_bytes_);
  }
  const ShardPlace place = rest_.place;
  rest_.place.offset += static_cast<uint32_t>(bytes);
  rest_bytes_ -= bytes;
  return place;
}

void RowMemory::give_back(const ShardPlace& place, uint64_t bytes) {
  count(-static_cast<int64_t>(bytes));
  spares_[bytes].push_back(place);
}

}  // namespace rdmacoll::ps
