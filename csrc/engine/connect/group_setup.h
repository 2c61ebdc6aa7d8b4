// Group set-up: how a rank becomes one of a new group. One exchange of records over the bootstrap;
// then links to a few ranks (linker.h). The others are linked when they are needed.
// Floor: engine/connect. Thread: the one that makes the group.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/status.h"
#include "csrc/engine/channel/peer_links.h"
#include "csrc/engine/connect/bootstrap.h"
#include "csrc/engine/connect/group_record.h"
#include "csrc/engine/connect/linker.h"
#include "csrc/engine/connect/transports.h"
#include "csrc/plan/islands.h"

namespace rdmacoll {

// What a group is made of. The islands are equal on all ranks, as they come from the records alone;
// ranks of one map each other's memory once they are linked, others may, too.
struct NewGroup {
  std::unique_ptr<PeerLinks> links;
  Islands islands;
  uint32_t token = 0;       // by which the linker knows it
  uint32_t ranks_here = 1;  // of this host, with this one
};

// Whom a rank links to when a group is made: the ranks at distances of 1, 2, 4 and so on, in both
// directions. In small groups these are all; from them word of a failure spreads in few steps.
std::vector<uint32_t> first_to_meet(uint32_t rank, uint32_t world);

// One rank's part, in the steps between which the ranks need each other.
class GroupSetup {
 public:
  // Makes this rank's block. The transports, the linker and the clock outlive the group.
  static Result<GroupSetup> begin(Transports& transports, Linker& linker, const Clock& clock,
                                  const Config& config, Layout layout, uint32_t rank,
                                  uint32_t world);

  // What the others must know, to be exchanged.
  std::string record() const { return mine_.encode(); }
  // Checks everybody's records, and begins to link to these.
  Status meet(const std::vector<std::string>& records, const std::vector<uint32_t>& whom);
  // Once all of them are linked. Timeout: they are not by the deadline, where a call with a later
  // one goes on. Unsupported: one of this rank's island is reached without mapping it.
  Result<NewGroup> finish(Deadline deadline);
  // Instead of finish(), or after it has failed: takes the memory back and closes the others'.
  void give_up();

 private:
  GroupSetup(Transports& transports, Linker& linker, const Clock& clock, Layout layout,
             Region block, GroupRecord mine);
  Status check(const GroupRecord& theirs, uint32_t rank) const;
  // Whether all are linked.
  Result<bool> look() const;
  Status timed_out() const;

  Transports& transports_;
  Linker& linker_;
  const Clock& clock_;
  GroupRecord mine_;
  std::unique_ptr<PeerLinks> links_;
  std::optional<Islands> islands_;
  uint32_t ranks_here_ = 0;
  std::vector<uint32_t> whom_;
};

// All the steps, with one exchange over the bootstrap. The ranks may come as far apart as the
// timeout allows; from then on the connections have Config::connect_timeout_ms, if that is less.
Result<NewGroup> set_up_group(Transports& transports, Linker& linker, const Clock& clock,
                              const Config& config, uint32_t rank, uint32_t world,
                              Bootstrap& bootstrap, int64_t timeout_ms);

// Instead, on a rank that cannot begin: the others hear why, and need not wait for it.
void decline_group(Bootstrap& bootstrap, const Status& why);

}  // namespace rdmacoll
