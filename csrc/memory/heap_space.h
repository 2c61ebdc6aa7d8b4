// HeapSpace: which parts of a heap are taken. It deals in offsets and touches no memory, so that
// peers who write into the heap cannot harm its books.
// Floor: memory. Thread: the owner's lock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace rdmacoll {

// The space is made of extents, each made when those before it have no room. What is taken lies
// within one extent, since a network device knows each by a key of its own.
class HeapSpace {
 public:
  static constexpr uint64_t kAlignment = 64;  // a cache line, as torch's own allocator

  struct Extent {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  explicit HeapSpace(uint64_t capacity) : capacity_(capacity / kAlignment * kAlignment) {}

  // The smallest free part that holds so many bytes (0 counts as 1). Nothing: no extent has room.
  std::optional<uint64_t> take(uint64_t bytes);
  // Makes the extent in which take(bytes) succeeds: as large as all before it together, if there
  // is room, and at least `least`. Nothing: what is left is too small.
  std::optional<Extent> extend(uint64_t bytes, uint64_t least);
  // Returns what was taken at this offset, so many bytes; 0: nothing was.
  uint64_t give(uint64_t offset);

  uint64_t capacity() const { return capacity_; }
  uint64_t extended() const { return extended_; }  // bytes in extents
  uint64_t taken() const { return taken_bytes_; }

 private:
  using FreePart = std::map<uint64_t, uint64_t>::iterator;
  void add_free(uint64_t offset, uint64_t bytes);
  void remove_free(FreePart part);

  uint64_t capacity_;
  uint64_t extended_ = 0;
  uint64_t taken_bytes_ = 0;
  std::set<uint64_t> extent_starts_;
  std::unordered_map<uint64_t, uint64_t> taken_;        // bytes by offset
  std::map<uint64_t, uint64_t> free_;                   // bytes by offset; neighbours are joined
  std::set<std::pair<uint64_t, uint64_t>> free_sizes_;  // bytes, offset: the same parts
};

}  // namespace rdmacoll
