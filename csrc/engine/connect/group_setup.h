// Group set-up: how the ranks of a new group find each other's blocks. One exchange of records over
// the bootstrap, then connections to processes not met before, then the regions.
// Floor: engine/connect. Thread: the one that makes the group.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/status.h"
#include "csrc/engine/channel/port.h"
#include "csrc/engine/connect/bootstrap.h"
#include "csrc/engine/connect/group_record.h"
#include "csrc/engine/connect/path.h"
#include "csrc/engine/connect/transports.h"
#include "csrc/plan/islands.h"

namespace rdmacoll {

// What a group is made of, with the path by which each of its ranks is reached; the own entry is
// empty. The islands are equal on all ranks, as they come from the records alone. Ranks of one have
// mapped each other's blocks; others may have, too.
struct NewGroup {
  GroupBlocks blocks;
  std::vector<Path> paths;
  Islands islands;
};

// One rank's part, in the steps between which the ranks need each other.
class GroupSetup {
 public:
  // Makes this rank's block. The transports and the clock outlive the group.
  static Result<GroupSetup> begin(Transports& transports, const Clock& clock, const Config& config,
                                  Layout layout, uint32_t rank, uint32_t world);

  // What the others must know, to be exchanged.
  std::string record() const { return mine_.encode(); }
  // Checks everybody's records, meets their processes, all at once, and offers them the block.
  Status meet(const std::vector<std::string>& records, Deadline deadline);
  // Opens everybody's blocks, once they have been offered. Unsupported: one of this rank's island
  // is reached without mapping it.
  Result<NewGroup> finish(Deadline deadline);
  // Instead of finish(), or after it has failed: takes the block back and closes the others'.
  void give_up();

 private:
  GroupSetup(Transports& transports, const Clock& clock, Layout layout, Region block,
             GroupRecord mine);
  Status offer(uint32_t peer, const Path& path);
  Status check(const GroupRecord& theirs, uint32_t rank) const;
  Islands islands() const;
  Status not_mapped(uint32_t peer) const;

  Transports& transports_;
  const Clock& clock_;
  Layout layout_;
  Region block_;
  GroupRecord mine_;
  std::vector<GroupRecord> theirs_;  // by rank
  std::vector<Path> paths_;
};

// All the steps, with one exchange over the bootstrap. The ranks may come as far apart as the
// timeout allows; from then on the connections have Config::connect_timeout_ms, if that is less.
Result<NewGroup> set_up_group(Transports& transports, const Clock& clock, const Config& config,
                              uint32_t rank, uint32_t world, Bootstrap& bootstrap,
                              int64_t timeout_ms);

// Instead, on a rank that cannot begin: the others hear why, and need not wait for it.
void decline_group(Bootstrap& bootstrap, const Status& why);

}  // namespace rdmacoll
