// Share. Floor: ps/table. Thread: values.
#include "csrc/ps/table/share.h"

#include <algorithm>
#include <optional>

namespace rdmacoll::ps {
namespace {

constexpr uint32_t kAtOnce = 64;

using Counts = std::map<ServerId, uint32_t>;  // of buckets, by server

// Moves some of the buckets to the server until it has enough: such as nobody has, and those of who
// has most. from: who would have the bucket less; nullopt: it is not to be moved.
BucketsOf moved(Counts counts, ServerId server, uint32_t enough, const BucketMap& map,
                const std::function<std::optional<ServerId>(const BucketMap::Place&)>& from) {
  BucketsOf all;
  std::vector<bool> is_taken(kBuckets);
  counts[kNoServer] = UINT32_MAX;
  for (uint32_t left = kAtOnce; left > 0 && counts[server] < enough; --left) {
    std::optional<uint32_t> best;
    uint32_t most = enough;  // who has no more keeps them
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      const auto loser = is_taken[bucket] ? std::nullopt : from(map.of(bucket));
      if (!loser || counts[*loser] <= most) continue;
      best = bucket;
      most = counts[*loser];
    }
    if (!best) break;
    is_taken[*best] = true;
    --counts[*from(map.of(*best))];
    ++counts[server];
    all[map.of(*best).primary].push_back(*best);
  }
  return all;
}

}  // namespace

Share share_of(const BucketMap& map, ServerId server, bool keeps_backups,
               const std::function<bool(ServerId)>& may_back) {
  Counts primaries{{server, 0}};
  Counts parts{{server, 0}};  // as primary or backup
  uint32_t buckets = 0;       // that are not lost
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const BucketMap::Place& place = map.of(bucket);
    for (const ServerId one : {place.primary, place.backup}) {
      if (one == kNoServer) continue;
      ++parts[one];
      primaries.try_emplace(one);
    }
    if (place.primary == kNoServer) continue;
    ++primaries[place.primary];
    ++buckets;
  }
  const uint32_t fair = buckets / static_cast<uint32_t>(primaries.size());
  using Loser = std::optional<ServerId>;
  const auto is_offered = [&](const BucketMap::Place& place) {
    return place.primary != server && place.backup != server && place.primary != kNoServer;
  };
  const auto of_primaries = [&] {
    return moved(primaries, server, fair, map, [&](const BucketMap::Place& place) {
      const bool is_its = is_offered(place) && (!keeps_backups || may_back(place.primary));
      return is_its ? Loser(place.primary) : std::nullopt;
    });
  };
  Share share;
  if (!keeps_backups) {
    share.offers = of_primaries();
    return share;
  }
  share.offers = moved(parts, server, 2 * fair, map, [&](const BucketMap::Place& place) {
    return is_offered(place) && may_back(place.primary) ? Loser(place.backup) : std::nullopt;
  });
  if (!share.offers.empty()) return share;
  share.hand_over = moved(primaries, server, fair, map, [&](const BucketMap::Place& place) {
    return place.backup == server ? Loser(place.primary) : std::nullopt;
  });
  // It may be the backup of none that has too many, where several have come at once.
  if (share.hand_over.empty()) share.offers = of_primaries();
  return share;
}

}  // namespace rdmacoll::ps
