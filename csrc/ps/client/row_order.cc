// RowOrder. Floor: ps/client. Thread: one.
#include "csrc/ps/client/row_order.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace rdmacoll::ps {

// A counting sort by bucket: a bucket has few of the ids, which are then sorted by comparing.
RowOrder::RowOrder(uint32_t table, std::span<const uint64_t> ids, const BucketMap& map)
    : rows_(ids.size()) {
  std::vector<uint16_t> buckets(ids.size());
  std::array<uint32_t, kBuckets> ends{};
  for (size_t i = 0; i < ids.size(); ++i) {
    buckets[i] = static_cast<uint16_t>(bucket_of_row(table, ids[i]));
    ++ends[buckets[i]];
  }
  std::array<uint32_t, kBuckets> by_server{};
  std::iota(by_server.begin(), by_server.end(), 0);
  std::ranges::stable_sort(by_server, {}, [&](uint32_t bucket) { return map.of(bucket).primary; });
  uint32_t end = 0;
  for (const uint32_t bucket : by_server) {
    const uint32_t begin = end;
    end += ends[bucket];
    if (end > begin) runs_.push_back({map.of(bucket).primary, bucket, begin, end});
    ends[bucket] = begin;
  }
  for (uint32_t i = 0; i < ids.size(); ++i) rows_[ends[buckets[i]]++] = i;
  for (const Run& run : runs_) {
    std::sort(rows_.begin() + run.begin, rows_.begin() + run.end,
              [&](uint32_t a, uint32_t b) { return ids[a] != ids[b] ? ids[a] < ids[b] : a < b; });
  }
}

}  // namespace rdmacoll::ps
