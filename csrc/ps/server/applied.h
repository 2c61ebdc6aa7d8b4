// Applied: which pushes a server has applied, by bucket and worker: so one that is sent again is
// applied once, and none before those that come before it. It goes with the bucket wherever that
// goes. Floor: ps/server. Thread: the server's.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "csrc/ps/table/table_spec.h"

namespace rdmacoll::ps {

class Applied {
 public:
  using OfBucket = std::map<uint64_t, uint64_t>;  // the last push of each worker

  enum class Turn : uint8_t { Next, Again, TooSoon };
  // The first push of a worker to a bucket has number 1.
  Turn turn(uint32_t bucket, uint64_t worker, uint64_t push) const {
    const auto found = buckets_[bucket].find(worker);
    const uint64_t last = found == buckets_[bucket].end() ? 0 : found->second;
    return push == last + 1 ? Turn::Next : push <= last ? Turn::Again : Turn::TooSoon;
  }
  void note(uint32_t bucket, uint64_t worker, uint64_t push) { buckets_[bucket][worker] = push; }
  const OfBucket& of(uint32_t bucket) const { return buckets_[bucket]; }
  void set(uint32_t bucket, OfBucket applied) { buckets_[bucket] = std::move(applied); }

 private:
  std::array<OfBucket, kBuckets> buckets_{};
};

}  // namespace rdmacoll::ps
