// HeartbeatMonitor: tells a peer whose process does not run from one that is only late. Every
// process counts its heartbeats in its blocks, by a thread that needs nothing but a core; who waits
// for a peer reads its count, one-sidedly, now and then. A count that stands still for as long as
// the bound says belongs to a process that is stopped, in a debugger, or in a paused container.
// Floor: engine/failure. Thread: the driver; beat() any.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "csrc/engine/channel/peer_links.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

class HeartbeatMonitor {
 public:
  // bound_ns: how long a count may stand still; 0: for ever.
  HeartbeatMonitor(const PeerLinks& links, int64_t bound_ns);

  int64_t bound_ns() const { return bound_ns_; }

  // One heartbeat of this rank.
  void beat();
  // A peer that has stood still for the bound, of those that are waited for. One that is not met is
  // none. Only time counts in which this rank looks: one that was stopped itself knows nothing of
  // the others.
  std::optional<uint32_t> look(int64_t now_ns, const std::function<bool(uint32_t)>& waits_for);

 private:
  // Of a peer that is met.
  struct Seen {
    uint64_t beats = 0;
    int64_t still_ns = 0;
    bool is_reading = false;
    Ticket ticket{};
  };
  bool still(const MetPeer& peer, Seen& seen, int64_t passed_ns);
  void read(const MetPeer& peer, Seen& seen);

  const PeerLinks& links_;
  const int64_t bound_ns_;
  int64_t looked_ns_ = 0;
  std::vector<Seen> seen_;  // by MetPeer::index
};

}  // namespace rdmacoll
