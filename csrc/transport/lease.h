// Lease: which peers may still reach a region of this process. Its id can be given to other memory
// once none can. Withdrawals: which regions of a peer this process must not open any more. Each
// transport keeps its own, and has its own messages for both: see "Region ids" in
// docs/TRANSPORTS.md.
// Floor: transport. Thread: under the transport's mutex.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "csrc/memory/region.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

// Which use of an id: a transport counts the regions that it registers.
using Generation = uint64_t;

struct Lease {
  Generation generation = 0;
  bool released = false;
  std::vector<PeerId> readers{};  // of each offer the peer, until it has closed the region
  std::vector<PeerId> closers{};  // peers that have closed it, before it was offered to them

  void offered(PeerId peer) {
    if (std::erase(closers, peer) == 0) readers.push_back(peer);
  }
  // A notice about an earlier use of the id is ignored. As the key may come to a peer by another
  // way than the offer, the peer may be done with the region before it is offered to it.
  void closed(PeerId peer, Generation of) {
    if (of != generation) return;
    if (const auto offer = std::find(readers.begin(), readers.end(), peer);
        offer != readers.end()) {
      readers.erase(offer);  // it may have been offered to it again meanwhile
      return;
    }
    std::erase(closers, peer);  // it may say so twice
    closers.push_back(peer);
  }
};

class Withdrawals {
 public:
  void add(RegionId region, Generation generation) {
    Generation& latest = latest_[region];
    latest = std::max(latest, generation);
  }
  bool has(RegionId region, Generation generation) const {
    const auto found = latest_.find(region);
    return found != latest_.end() && generation <= found->second;
  }

 private:
  std::map<RegionId, Generation> latest_;  // at most one for each id
};

// For whoever comes too late to open a region.
inline Status withdrawn_by(const std::string& owner) {
  return Status(StatusCode::PeerFailed,
                owner +
                    " has taken its memory back: it gave up making the group; its own error "
                    "says why");
}

}  // namespace rdmacoll
