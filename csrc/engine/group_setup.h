// Group set-up: how the ranks of a new group find each other's blocks. One exchange of records over
// the bootstrap, then connections to processes not met before, then the regions.
// Floor: engine. Thread: the one that makes the group.
#pragma once

#include <memory>
#include <string>
#include <vector>

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

// One rank's part, in the steps between which the ranks need each other.
class GroupSetup {
 public:
  // Makes this rank's block. The transport and the clock outlive the group.
  static Result<GroupSetup> begin(Transport& transport, const Clock& clock, const Config& config,
                                  Layout layout, uint32_t rank, uint32_t world);

  // What the others must know, to be exchanged.
  std::string record() const { return mine_.encode(); }
  // Checks everybody's records, meets their processes and offers them the block.
  Status meet(const std::vector<std::string>& records, Deadline deadline);
  // Opens everybody's blocks, once they have been offered.
  Result<std::unique_ptr<Group>> finish(Deadline deadline);
  // Instead of finish(), after a failure.
  void give_up();

 private:
  GroupSetup(Transport& transport, const Clock& clock, Layout layout, Region block,
             GroupRecord mine);
  Status check(const GroupRecord& theirs, uint32_t rank) const;

  Transport& transport_;
  const Clock& clock_;
  Layout layout_;
  Region block_;
  GroupRecord mine_;
  std::vector<std::string> keys_;
  std::vector<Link> links_;
};

// All the steps, with one exchange over the bootstrap.
Result<std::unique_ptr<Group>> set_up_group(Transport& transport, const Clock& clock,
                                            const Config& config, uint32_t rank, uint32_t world,
                                            Bootstrap& bootstrap, Deadline deadline);

}  // namespace rdmacoll
