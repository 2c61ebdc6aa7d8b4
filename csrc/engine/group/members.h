// Members: the other members of a group as this rank sees them: what each said last, and which are
// gone, lost or evicted. This rank's own last message goes to them from here.
// Floor: engine/group. Thread: is_gone(), lost() and what never changes any; the rest the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/channel/layout.h"
#include "csrc/engine/channel/member_status.h"
#include "csrc/engine/channel/peer_links.h"
#include "csrc/engine/failure/shrink_state.h"

namespace rdmacoll {

class Members {
 public:
  // The clock outlives this.
  Members(const Clock& clock, std::unique_ptr<PeerLinks> links)
      : clock_(clock), links_(std::move(links)), evicted_(links_->world()) {}

  uint32_t rank() const { return links_->rank(); }
  uint32_t world() const { return links_->world(); }
  PeerLinks& links() const { return *links_; }
  const Region& block() const { return links_->block(); }
  const Layout& layout() const { return links_->layout(); }

  // What the peer said last; nullopt: it is a member like any other, as far as this rank knows.
  std::optional<MemberStatus> status_of(uint32_t peer) const;
  // Ok, or why the peer's process cannot be reached, or not any more.
  Status reach(uint32_t peer) const;
  // How the peer has ended, for people; "": it has not.
  std::string end_of(uint32_t peer) const;

  // Whether the peer is dead, cannot be reached, has left, or is evicted.
  bool is_gone(uint32_t peer) const;
  // The peers that are gone, and the one whose end was the first cause.
  RankSet lost() const;
  // The end of this peer is the first cause, unless another's was.
  void note_lost(uint32_t peer);

  // Whether the peer can write nothing here any more, nor a device of this rank read for it.
  bool cut_off(uint32_t peer) const;
  // Treats the peer as dead, also where it cannot be cut off: through shared memory, one that wakes
  // up writes into a block that nobody uses any more.
  void evict(uint32_t peer);
  // Writes this rank's status line to every member that it has met; to one. Nothing may be sent
  // behind it.
  void tell_all(ExitReason reason, const std::string& cause) const;
  void tell(uint32_t peer, ExitReason reason, const std::string& cause) const;

 private:
  const Clock& clock_;
  const std::unique_ptr<PeerLinks> links_;
  mutable std::mutex mutex_;  // both below
  RankSet evicted_;
  std::optional<uint32_t> first_lost_;
};

}  // namespace rdmacoll
