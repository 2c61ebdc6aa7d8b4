// Group set-up: how the ranks of a new group find each other's blocks. One exchange of records over
// the bootstrap, then connections to processes not met before, then the regions.
// Floor: engine. Thread: the one that makes the group.
#pragma once

#include <memory>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/status.h"
#include "csrc/engine/bootstrap.h"
#include "csrc/engine/group.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

// What a rank tells the others of its group.
struct GroupRecord {
  uint64_t agreement = 0;  // Config::agreement_hash()
  uint32_t rank = 0;
  uint32_t world = 0;
  std::string card;  // Transport::local_card()
  std::string key;   // Transport::region_key() of its block
  RegionId region = kNoRegion;

  std::string encode() const;
  // InvalidArgument for bytes that are not a record of this version.
  static Result<GroupRecord> decode(const std::string& bytes);
};

Result<std::unique_ptr<Group>> set_up_group(Transport& transport, const Clock& clock,
                                            const Config& config, uint32_t rank, uint32_t world,
                                            Bootstrap& bootstrap, Deadline deadline);

}  // namespace rdmacoll
