// RowReads: rows that a worker reads in the memory of servers of its host, which have no part in
// it. Floor: ps/client. Thread: under the client's lock.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "csrc/ps/client/surroundings.h"
#include "csrc/ps/table/bucket_map.h"
#include "csrc/ps/table/row_directory.h"
#include "csrc/ps/table/shard_place.h"

namespace rdmacoll::ps {

class RowReads {
 public:
  explicit RowReads(Surroundings& surroundings) : surroundings_(surroundings) {}

  // The directory of a table's rows lies there.
  void learn(uint32_t table, ServerId server, const ShardPlace& directory);
  // The server was started again, or there is another way to it.
  void forget(ServerId server);
  bool knows(uint32_t table) const;

  struct Wanted {
    uint32_t table = 0;
    std::span<const uint64_t> ids{};
    std::byte* into = nullptr;  // a row for each id
    uint64_t row_bytes = 0;
  };
  // rows: which of the ids, by their places. Those that the map's primaries have are read. Left are
  // those that are not made yet, or not shown, or change all the time.
  void read(const Wanted& wanted, const BucketMap& map, const Limit& limit,
            std::vector<uint32_t>& rows);

 private:
  class Reading;

  Surroundings& surroundings_;
  std::map<std::pair<uint32_t, ServerId>, ShardPlace> known_;  // by the table
};

}  // namespace rdmacoll::ps
