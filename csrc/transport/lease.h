// Lease: what the owner of a region keeps of the peers that it was offered to, until its id can be
// given to other memory. Withdrawals: what a peer keeps of regions that were taken back before it
// had opened them. Each transport has its own, and its own way to tell: see "Region ids" in
// docs/ARCHITECTURE.md.
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
  std::vector<PeerId> readers{};  // it was offered to, and that have not said that it is closed
  std::vector<PeerId> closers{};  // that said so before it was offered to them

  void offered(PeerId peer) {
    if (std::erase(closers, peer) == 0) readers.push_back(peer);
  }
  // What is said of an earlier use means nothing. The key may come to a peer by another way, so it
  // may be done with the region before it is offered to it.
  void closed(PeerId peer, Generation of) {
    if (of != generation || std::erase(readers, peer) > 0) return;
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
  std::map<RegionId, Generation> latest_;  // no longer than there are ids
};

// For whoever comes too late to open a region.
inline Status withdrawn_by(const std::string& owner) {
  return Status(StatusCode::PeerFailed,
                owner +
                    " has taken its memory back: it gave up making the group; its own error "
                    "says why");
}

}  // namespace rdmacoll
