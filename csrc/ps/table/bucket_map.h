// BucketMap: which server has which bucket. It lies in the job's Store, and is changed there by
// compare-and-set alone, so all changes are in one order. It comes from outside, so parsing trusts
// nothing. Floor: ps/table. Thread: values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/ps/table/table_spec.h"

namespace rdmacoll::ps {

using ServerId = uint16_t;
inline constexpr ServerId kNoServer = UINT16_MAX;
inline constexpr uint32_t kMostServers = 1024;

// The lease: for so long who has read the map may believe it. A server whose lease has passed
// answers no pulls. A worker whose lease has passed asks, and reads in no server's memory. A new
// primary answers and takes nothing until all leases of the map before have passed. It need not
// wait for a bucket that the primary before has handed over.
inline constexpr int64_t kLeaseNs = 300'000'000;

class BucketMap {
 public:
  struct Place {
    ServerId primary = kNoServer;
    ServerId backup = kNoServer;  // kNoServer: there is none
    uint32_t epoch = 0;           // counts the changes of this bucket's primary or backup

    bool operator==(const Place&) const = default;
  };

  // The first one: the buckets in turn, with backups where there are two servers or more and
  // `replicas` is 2.
  // hosts: of each server a number; those of one host are no backups of each other, where there are
  // others. Empty: each is on a host of its own.
  static BucketMap spread(uint32_t servers, uint32_t replicas,
                          const std::vector<uint32_t>& hosts = {});

  uint64_t version() const { return version_; }
  const Place& of(uint32_t bucket) const { return places_[bucket]; }
  // All that have a bucket, as primary or backup, in the order of their numbers.
  std::vector<ServerId> servers() const;
  // Whether the server is the primary of a bucket.
  bool has_primary(ServerId server) const;
  // The map without a server: its backups have what it had, and it backs nobody up.
  BucketMap without(ServerId server) const;
  // Counts the version up.
  void set(uint32_t bucket, ServerId primary, ServerId backup);

  bool operator==(const BucketMap&) const = default;

  std::string encode() const;
  // InvalidArgument: it makes no sense.
  static Result<BucketMap> parse(const std::string& bytes);

 private:
  uint64_t version_ = 1;
  std::array<Place, kBuckets> places_{};
};

}  // namespace rdmacoll::ps
