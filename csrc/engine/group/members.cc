// Members. Floor: engine/group. Thread: see members.h.
#include "csrc/engine/group/members.h"

namespace rdmacoll {
namespace {

constexpr int64_t kFenceMs = 1000;

}  // namespace

std::optional<MemberStatus> Members::status_of(uint32_t peer) const {
  const MetPeer* met = links().at(peer);
  if (met == nullptr) return std::nullopt;
  const Link& link = met->link;
  return MemberStatus::read(link.own_slab.base + layout().status(link.own_room), world());
}

Status Members::reach(uint32_t peer) const {
  RDMACOLL_RETURN_IF_ERROR(links().failure_of(peer));
  const MetPeer* met = links().at(peer);
  if (met == nullptr) return Status();
  return met->link.transport->peer_status(met->link.peer);
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
  return evicted_[peer];
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
  const MetPeer* met = links().at(peer);
  if (met == nullptr) return true;
  const Link& link = met->link;
  return link.transport->fence(link.peer, Deadline::after_ms(clock_, kFenceMs)).ok();
}

void Members::evict(uint32_t peer) {
  [[maybe_unused]] const bool refused_from_here = cut_off(peer);
  std::lock_guard<std::mutex> lock(mutex_);
  evicted_[peer] = true;
}

void Members::tell_all(ExitReason reason, const std::string& cause) const {
  for (uint32_t peer = 0; peer < world(); ++peer) {
    if (peer != rank() && links().at(peer) != nullptr) tell(peer, reason, cause);
  }
}

void Members::tell(uint32_t peer, ExitReason reason, const std::string& cause) const {
  const MemberStatus status{.reason = reason, .lost = first_lost_, .cause = cause};
  const Link& link = links().at(peer)->link;
  // A full queue to a peer that takes nothing must not hold up the failure; it has its deadline.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    if (status.publish(link, layout().status(link.room)) != Posted::Full) return;
    link.transport->poll();
  }
}

}  // namespace rdmacoll
