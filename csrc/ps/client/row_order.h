// RowOrder: the rows of a push in the order in which their servers take them: by server, by bucket,
// by id, and those of one id as they were given. Floor: ps/client. Thread: one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "csrc/ps/table/bucket_map.h"

namespace rdmacoll::ps {

class RowOrder {
 public:
  RowOrder(uint32_t table, std::span<const uint64_t> ids, const BucketMap& map);

  struct Run {  // of one bucket
    ServerId server = kNoServer;
    uint32_t bucket = 0;
    uint32_t begin = 0;  // in rows()
    uint32_t end = 0;
  };
  const std::vector<Run>& runs() const { return runs_; }
  // Where each row is in what was given.
  const std::vector<uint32_t>& rows() const { return rows_; }

 private:
  std::vector<uint32_t> rows_;
  std::vector<Run> runs_;
};

}  // namespace rdmacoll::ps
