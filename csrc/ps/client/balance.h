// Balance: which buckets their primaries are to hand over to their backups, so that all servers
// have about as much to do. Pure. Floor: ps/client. Thread: any.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "csrc/ps/table/bucket_map.h"

namespace rdmacoll::ps {

using Loads = std::array<uint64_t, kBuckets>;  // what was pushed and pulled, in bytes

// By primaries. The one that has most gives to a backup that has less, as long as that helps: the
// buckets are chosen by how near they come to making these two alike.
std::map<ServerId, std::vector<uint32_t>> balance(const BucketMap& map, const Loads& loads);

// What the busiest server has, of what all have on the average; 1 if there is nothing to do.
double imbalance(const BucketMap& map, const Loads& loads);

}  // namespace rdmacoll::ps
