// Members. Floor: engine/group. Thread: see members.h.
#include "csrc/engine/group/members.h"

namespace rdmacoll {
namespace {

constexpr int64_t kFenceMs = 1000;

}  // namespace

Status Members::reach(uint32_t peer) const {
  const Link& link = links()[peer];
  return link.transport->peer_status(link.peer);
}

std::string Members::end_of(uint32_t peer) const {
  if (const auto said = status_of(peer)) {
    return said->reason == ExitReason::Left ? "has left the group" : "gave the group up";
  }
  const Status reached = reach(peer);
  return reached.ok() ? "" : "is gone (" + reached.message() + ")";
}

bool Members::is_gone(uint32_t peer) const {
  const auto said = status_of(peer);
  if (said && said->reason == ExitReason::Left) return true;
  if (!reach(peer).ok()) return true;
  std::lock_guard<std::mutex> lock(mutex_);
  return evicted_ == peer;
}

RankSet Members::lost() const {
  RankSet lost(world());
  for (uint32_t peer = 0; peer < world(); ++peer) lost[peer] = peer != rank() && is_gone(peer);
  std::lock_guard<std::mutex> lock(mutex_);
  if (first_lost_ && *first_lost_ != rank()) lost[*first_lost_] = true;
  return lost;
}

void Members::note_lost(uint32_t peer) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!first_lost_) first_lost_ = peer;
}

bool Members::cut_off(uint32_t peer) const {
  const Link& link = links()[peer];
  return link.transport->fence(link.peer, Deadline::after_ms(clock_, kFenceMs)).ok();
}

void Members::evict(uint32_t peer) {
  [[maybe_unused]] const bool refused_from_here = cut_off(peer);
  std::lock_guard<std::mutex> lock(mutex_);
  evicted_ = peer;
}

void Members::tell_all(ExitReason reason, const std::string& cause) const {
  const MemberStatus status{.reason = reason, .lost = first_lost_, .cause = cause};
  for (uint32_t peer = 0; peer < world(); ++peer) {
    if (peer == rank()) continue;
    const Link& link = links()[peer];
    // A full queue to a peer that takes nothing must not hold up the failure; it has its deadline.
    for (int attempt = 0; attempt < 1000; ++attempt) {
      if (status.publish(link, layout().status(rank())) != Posted::Full) break;
      link.transport->poll();
    }
  }
}

}  // namespace rdmacoll
