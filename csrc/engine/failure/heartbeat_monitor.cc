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

}  // namespace

HeartbeatMonitor::HeartbeatMonitor(const Layout& layout, const Region& block,
                                   const std::vector<Link>& links, int64_t bound_ns)
    : own_(block.base + layout.heartbeat().own),
      reads_(layout.heartbeat(), block, links),
      bound_ns_(bound_ns),
      seen_(links.size()) {}

void HeartbeatMonitor::beat() {
  reinterpret_cast<std::atomic<uint64_t>*>(own_)->fetch_add(1, std::memory_order_release);
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
  if (const std::byte* read = reads_.take(peer)) {
    uint64_t beats = 0;
    std::memcpy(&beats, read, sizeof(beats));
    if (beats != 0 && beats != seen.beats) seen = {.beats = beats};
  }
  reads_.post(peer, peer);
  seen.still_ns += passed_ns;
  return seen.still_ns > bound_ns_;
}

}  // namespace rdmacoll
