// HeapSpace: best fit, joined with free neighbours when given back. Floor: memory.
#include "csrc/memory/heap_space.h"

#include <algorithm>
#include <iterator>

namespace rdmacoll {
namespace {

// 0 where the rounded size would not fit in 64 bits: nothing holds that much.
uint64_t rounded(uint64_t bytes) {
  const uint64_t up = std::max<uint64_t>(bytes, 1) + HeapSpace::kAlignment - 1;
  return up < bytes ? 0 : up / HeapSpace::kAlignment * HeapSpace::kAlignment;
}

}  // namespace

std::optional<uint64_t> HeapSpace::take(uint64_t wanted) {
  const uint64_t bytes = rounded(wanted);
  if (bytes == 0) return std::nullopt;
  const auto fit = free_sizes_.lower_bound({bytes, 0});
  if (fit == free_sizes_.end()) return std::nullopt;
  const auto [part_bytes, offset] = *fit;
  remove_free(free_.find(offset));
  if (part_bytes > bytes) add_free(offset + bytes, part_bytes - bytes);
  taken_.emplace(offset, bytes);
  taken_bytes_ += bytes;
  return offset;
}

std::optional<HeapSpace::Extent> HeapSpace::extend(uint64_t wanted, uint64_t least) {
  const uint64_t bytes = rounded(wanted);
  const uint64_t left = capacity_ - extended_;
  if (bytes == 0 || bytes > left) return std::nullopt;
  const Extent extent{extended_, std::min(left, rounded(std::max({bytes, least, extended_})))};
  extended_ += extent.bytes;
  extent_starts_.insert(extent.offset);
  add_free(extent.offset, extent.bytes);
  return extent;
}

uint64_t HeapSpace::give(uint64_t offset) {
  const auto found = taken_.find(offset);
  if (found == taken_.end()) return 0;
  const uint64_t given = found->second;
  uint64_t bytes = given;
  taken_.erase(found);
  taken_bytes_ -= given;
  const auto next = free_.find(offset + bytes);
  if (next != free_.end() && !extent_starts_.contains(next->first)) {
    bytes += next->second;
    remove_free(next);
  }
  const auto after = free_.lower_bound(offset);
  if (after != free_.begin() && !extent_starts_.contains(offset)) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      remove_free(before);
    }
  }
  add_free(offset, bytes);
  return given;
}

void HeapSpace::add_free(uint64_t offset, uint64_t bytes) {
  free_.emplace(offset, bytes);
  free_sizes_.emplace(bytes, offset);
}

void HeapSpace::remove_free(FreePart part) {
  free_sizes_.erase({part->second, part->first});
  free_.erase(part);
}

}  // namespace rdmacoll
