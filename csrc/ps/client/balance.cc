// Balance. Floor: ps/client. Thread: any.
#include "csrc/ps/client/balance.h"

#include <algorithm>
#include <optional>

namespace rdmacoll::ps {
namespace {

// A bucket is handed over if that takes this share of the mean off the busier of the two servers:
// for less the calls that wait meanwhile are not worth it.
constexpr double kLeastGain = 0.0002;

std::map<ServerId, uint64_t> by_server(const BucketMap& map, const Loads& loads) {
  std::map<ServerId, uint64_t> sums;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const BucketMap::Place& place = map.of(bucket);
    if (place.primary != kNoServer) sums[place.primary] += loads[bucket];
    if (place.backup != kNoServer) sums.try_emplace(place.backup);
  }
  return sums;
}

uint64_t mean_of(const std::map<ServerId, uint64_t>& sums) {
  uint64_t all = 0;
  for (const auto& [server, sum] : sums) all += sum;
  return sums.empty() ? 0 : all / sums.size();
}

}  // namespace

double imbalance(const BucketMap& map, const Loads& loads) {
  const auto sums = by_server(map, loads);
  const uint64_t mean = mean_of(sums);
  if (mean == 0) return 1;
  uint64_t most = 0;
  for (const auto& [server, sum] : sums) most = std::max(most, sum);
  return static_cast<double>(most) / static_cast<double>(mean);
}

std::map<ServerId, std::vector<uint32_t>> balance(const BucketMap& map, const Loads& loads) {
  auto sums = by_server(map, loads);
  const auto least = static_cast<uint64_t>(static_cast<double>(mean_of(sums)) * kLeastGain);
  BucketMap now = map;
  while (true) {
    std::optional<uint32_t> best;
    uint64_t best_gain = least;
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      const BucketMap::Place& place = now.of(bucket);
      if (place.primary == kNoServer || place.backup == kNoServer) continue;
      const uint64_t more = sums[place.primary], less = sums[place.backup];
      if (less + loads[bucket] >= more) continue;
      const uint64_t gain = more - std::max(more - loads[bucket], less + loads[bucket]);
      if (gain <= best_gain) continue;
      best = bucket;
      best_gain = gain;
    }
    if (!best) break;
    const BucketMap::Place place = now.of(*best);
    sums[place.primary] -= loads[*best];
    sums[place.backup] += loads[*best];
    now.set(*best, place.backup, place.primary);
  }
  std::map<ServerId, std::vector<uint32_t>> all;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const ServerId before = map.of(bucket).primary;
    if (now.of(bucket).primary != before) all[before].push_back(bucket);
  }
  return all;
}

}  // namespace rdmacoll::ps
