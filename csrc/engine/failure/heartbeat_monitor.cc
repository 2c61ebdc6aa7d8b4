// HeartbeatMonitor. Floor: engine/failure.
#include "csrc/engine/failure/heartbeat_monitor.h"

#include <algorithm>
#include <atomic>

#include "csrc/base/limits.h"

namespace rdmacoll {
namespace {

// Between two looks; several of them make a bound.
constexpr int64_t kLookNs = 2 * kHeartbeatNs;

std::atomic<uint64_t>& word_at(const Region& block, uint64_t offset) {
  return *reinterpret_cast<std::atomic<uint64_t>*>(block.base + offset);
}

}  // namespace

HeartbeatMonitor::HeartbeatMonitor(const Layout& layout, const Region& block,
                                   const std::vector<Link>& links, int64_t bound_ns)
    : layout_(layout), block_(block), links_(links), bound_ns_(bound_ns), seen_(links.size()) {}

void HeartbeatMonitor::beat() {
  word_at(block_, layout_.heartbeat()).fetch_add(1, std::memory_order_release);
}

std::optional<uint32_t> HeartbeatMonitor::look(int64_t now_ns,
                                               const std::function<bool(uint32_t)>& waits_for) {
  if (bound_ns_ == 0 || now_ns - looked_ns_ < kLookNs) return std::nullopt;
  const int64_t passed_ns = std::min(now_ns - looked_ns_, 2 * kLookNs);
  looked_ns_ = now_ns;
  for (uint32_t peer = 0; peer < seen_.size(); ++peer) {
    if (!waits_for(peer)) {
      seen_[peer].still_ns = 0;
    } else if (still(peer, passed_ns)) {
      return peer;
    }
  }
  return std::nullopt;
}

// Takes what was read last, and reads again.
bool HeartbeatMonitor::still(uint32_t peer, int64_t passed_ns) {
  Seen& seen = seen_[peer];
  if (seen.pending && seen.ticket.done()) seen.pending = false;
  if (!seen.pending) {
    const uint64_t beats =
        word_at(block_, layout_.seen_heartbeat(peer)).load(std::memory_order_relaxed);
    if (beats != seen.beats) seen.still_ns = 0;
    seen.beats = beats;
    read(peer);
  }
  seen.still_ns += passed_ns;
  return seen.still_ns > bound_ns_;
}

void HeartbeatMonitor::read(uint32_t peer) {
  const Link& link = links_[peer];
  Seen& seen = seen_[peer];
  seen.pending = link.read(layout_.heartbeat(), sizeof(uint64_t), block_,
                           layout_.seen_heartbeat(peer), &seen.ticket) == Posted::Pending;
}

}  // namespace rdmacoll
