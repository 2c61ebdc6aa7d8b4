// Share: what a server that has come while the job runs is to get of the buckets, by the map alone.
// Floor: ps/table. Thread: values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "csrc/ps/table/bucket_map.h"

namespace rdmacoll::ps {

using BucketsOf = std::map<ServerId, std::vector<uint32_t>>;  // by their primaries

struct Share {
  // In which it is to be the backup, or where nothing is kept twice the primary. The others have
  // more than they are to have.
  BucketsOf offers{};
  BucketsOf hand_over{};  // of which it is the backup, and is to be the primary
};

// The next part of it, some dozen buckets. Empty: it has its share, as far as there is any.
// may_back: whether it may be the backup of that server.
Share share_of(const BucketMap& map, ServerId server, bool keeps_backups,
               const std::function<bool(ServerId)>& may_back);

}  // namespace rdmacoll::ps
