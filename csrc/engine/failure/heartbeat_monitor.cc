// HeartbeatMonitor. Floor: engine/failure.
#include "csrc/engine/failure/heartbeat_monitor.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "csrc/base/limits.h"

namespace rdmacoll {
namespace {

// Between two looks; several of them make a bound.
constexpr int64_t kLookNs = 2 * kHeartbeatNs;

// Where this rank reads the peer's count.
std::byte* place_of(const PeerLinks& links, const MetPeer& peer) {
  return peer.link.own_slab.base + links.layout().read_heartbeat(peer.link.own_room);
}

}  // namespace

HeartbeatMonitor::HeartbeatMonitor(const PeerLinks& links, int64_t bound_ns)
    : links_(links), bound_ns_(bound_ns) {}

void HeartbeatMonitor::beat() {
  std::byte* const own = links_.block().base + links_.layout().heartbeat();
  reinterpret_cast<std::atomic<uint64_t>*>(own)->fetch_add(1, std::memory_order_release);
}

std::optional<uint32_t> HeartbeatMonitor::look(int64_t now_ns,
                                               const std::function<bool(uint32_t)>& waits_for) {
  if (bound_ns_ == 0 || now_ns - looked_ns_ < kLookNs) return std::nullopt;
  const int64_t passed_ns = std::min(now_ns - looked_ns_, 2 * kLookNs);
  looked_ns_ = now_ns;
  for (uint32_t rank = 0; rank < links_.world(); ++rank) {
    const MetPeer* peer = links_.at(rank);
    if (peer == nullptr || rank == links_.rank()) continue;
    if (seen_.size() <= peer->index) seen_.resize(peer->index + 1);
    Seen& seen = seen_[peer->index];
    if (!waits_for(rank)) {
      seen.still_ns = 0;
    } else if (still(*peer, seen, passed_ns)) {
      return rank;
    }
  }
  return std::nullopt;
}

// Takes what was read last, and reads again.
bool HeartbeatMonitor::still(const MetPeer& peer, Seen& seen, int64_t passed_ns) {
  if (seen.is_reading && seen.ticket.done()) {
    seen.is_reading = false;
    uint64_t beats = 0;
    std::memcpy(&beats, place_of(links_, peer), sizeof(beats));
    if (beats != 0 && beats != seen.beats) seen = {.beats = beats};
  }
  if (!seen.is_reading) read(peer, seen);
  seen.still_ns += passed_ns;
  return seen.still_ns > bound_ns_;
}

void HeartbeatMonitor::read(const MetPeer& peer, Seen& seen) {
  const Link& link = peer.link;
  const LocalSlice destination{place_of(links_, peer), kLineBytes, link.own_slab.id};
  // Nothing is read from a peer that is gone. What it said before must not pass for its words.
  std::memset(destination.data, 0, destination.bytes);
  Ticket ticket;
  const Posted posted = link.transport->get(
      link.peer, kOrderedChannel, {link.block.id, links_.layout().heartbeat(), kLineBytes},
      destination, &ticket);
  seen.is_reading = posted != Posted::Full;
  seen.ticket = posted == Posted::Pending ? ticket : Ticket{};
}

}  // namespace rdmacoll
