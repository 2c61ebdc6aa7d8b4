// BucketMap. Floor: ps/table. Thread: values.
#include "csrc/ps/table/bucket_map.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "csrc/base/check.h"

namespace rdmacoll::ps {
namespace {

constexpr uint32_t kMagic = 0x70616d62;  // "bmap"

// Of each primary all that its buckets have their backups at, in turn.
std::vector<std::vector<ServerId>> backups_of(uint32_t servers,
                                              const std::vector<uint32_t>& hosts) {
  std::vector<std::vector<ServerId>> all(servers);
  for (uint32_t primary = 0; primary < servers; ++primary) {
    std::vector<ServerId> near;
    for (uint32_t away = 1; away < servers; ++away) {
      const uint32_t other = (primary + away) % servers;
      const bool is_near = !hosts.empty() && hosts[primary] == hosts[other];
      (is_near ? near : all[primary]).push_back(static_cast<ServerId>(other));
    }
    if (all[primary].empty()) all[primary] = near;
  }
  return all;
}

}  // namespace

BucketMap BucketMap::spread(uint32_t servers, uint32_t replicas,
                            const std::vector<uint32_t>& hosts) {
  RDMACOLL_CHECK(servers > 0 && servers <= kMostServers);
  RDMACOLL_CHECK(hosts.empty() || hosts.size() == servers);
  const auto backups = backups_of(servers, hosts);
  BucketMap map;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    Place& place = map.places_[bucket];
    place.primary = static_cast<ServerId>(bucket % servers);
    if (replicas < 2 || servers < 2) continue;
    const auto& others = backups[place.primary];
    place.backup = others[bucket / servers % others.size()];
  }
  return map;
}

std::vector<ServerId> BucketMap::servers() const {
  std::set<ServerId> all;
  for (const Place& place : places_) all.insert({place.primary, place.backup});
  all.erase(kNoServer);
  return {all.begin(), all.end()};
}

bool BucketMap::has_primary(ServerId server) const {
  return std::ranges::any_of(places_, [&](const Place& place) { return place.primary == server; });
}

BucketMap BucketMap::without(ServerId server) const {
  BucketMap next = *this;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const Place& place = places_[bucket];
    if (place.primary == server) next.set(bucket, place.backup, kNoServer);
    if (place.backup == server) next.set(bucket, place.primary, kNoServer);
  }
  return next;
}

void BucketMap::set(uint32_t bucket, ServerId primary, ServerId backup) {
  RDMACOLL_CHECK(primary != backup || primary == kNoServer);
  Place& place = places_[bucket];
  place = {primary, backup, place.epoch + 1};
  ++version_;
}

std::string BucketMap::encode() const {
  std::string bytes(sizeof(kMagic) + sizeof(version_) + sizeof(places_), '\0');
  char* at = bytes.data();
  std::memcpy(at, &kMagic, sizeof(kMagic));
  std::memcpy(at += sizeof(kMagic), &version_, sizeof(version_));
  std::memcpy(at += sizeof(version_), places_.data(), sizeof(places_));
  return bytes;
}

Result<BucketMap> BucketMap::parse(const std::string& bytes) {
  const Status bad(StatusCode::InvalidArgument,
                   "the map of buckets makes no sense; install the same rdmacoll everywhere");
  BucketMap map;
  if (bytes.size() != sizeof(kMagic) + sizeof(map.version_) + sizeof(map.places_)) return bad;
  const char* at = bytes.data();
  if (std::memcmp(at, &kMagic, sizeof(kMagic)) != 0) return bad;
  std::memcpy(&map.version_, at += sizeof(kMagic), sizeof(map.version_));
  std::memcpy(map.places_.data(), at += sizeof(map.version_), sizeof(map.places_));
  for (const Place& place : map.places_) {
    const bool is_known = place.primary < kMostServers || place.primary == kNoServer;
    const bool is_backed = place.backup < kMostServers || place.backup == kNoServer;
    if (!is_known || !is_backed) return bad;
    if (place.primary == place.backup && place.primary != kNoServer) return bad;
  }
  return map;
}

}  // namespace rdmacoll::ps
