// PeerLinks. Floor: engine/channel. Thread: see peer_links.h.
#include "csrc/engine/channel/peer_links.h"

#include <algorithm>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/engine/channel/member_status.h"

namespace rdmacoll {

PeerLinks::PeerLinks(Layout layout, uint32_t rank, uint32_t world, Region block)
    : layout_(std::move(layout)), rank_(rank), world_(world), block_(block), by_rank_(world) {
  RDMACOLL_CHECK(block_.bytes >= layout_.block_bytes());
  const PeerRoom room = layout_.room(kOwnRoom);
  const Link own{
      .block = block_, .slab = block_, .room = room, .own_slab = block_, .own_room = room};
  met_.push_back(std::make_unique<MetPeer>(layout_, rank_, 0, own));
  by_rank_[rank_].store(met_.back().get());
}

PeerLinks::~PeerLinks() = default;

Status PeerLinks::failure_of(uint32_t rank) const {
  if (!has_failures_.load(std::memory_order_acquire)) return Status();
  const std::lock_guard lock(mutex_);
  const auto found = failures_.find(rank);
  return found == failures_.end() ? Status() : found->second;
}

bool PeerLinks::has_given_up(uint32_t rank) const {
  std::atomic_thread_fence(std::memory_order_acquire);  // the bytes first, then its word
  const Link& from = at(rank)->link;
  return MemberStatus::is_in(from.own_slab.base + layout_.status(from.own_room));
}

void PeerLinks::want(uint32_t rank) {
  if (at(rank) != nullptr) return;
  const std::lock_guard lock(mutex_);
  if (failures_.contains(rank)) return;
  if (std::find(wanted_.begin(), wanted_.end(), rank) == wanted_.end()) wanted_.push_back(rank);
  if (when_wanted_) when_wanted_();
}

// Each operation asks, and a lock costs a short one a twentieth of its time.
std::vector<uint32_t> PeerLinks::take_new() {
  std::vector<uint32_t> ranks;
  if (taken_ == count()) return ranks;
  const std::lock_guard lock(mutex_);
  while (taken_ < count()) ranks.push_back(met_[++taken_]->rank);
  return ranks;
}

void PeerLinks::when_wanted(std::function<void()> told) {
  const std::lock_guard lock(mutex_);
  when_wanted_ = std::move(told);
}

void PeerLinks::when_changed(std::function<void()> told) {
  const std::lock_guard lock(mutex_);
  when_changed_ = std::move(told);
}

std::vector<uint32_t> PeerLinks::take_wanted() {
  const std::lock_guard lock(mutex_);
  return std::exchange(wanted_, {});
}

void PeerLinks::add(uint32_t rank, const Link& link) {
  RDMACOLL_CHECK(rank < world_ && at(rank) == nullptr);
  auto peer = std::make_unique<MetPeer>(layout_, rank, count() + 1, link);
  if (link.is_mapped() && !link.maps_mine) all_map_mine_.store(false);
  if (!link.is_mapped()) some_are_remote_.store(true);
  if (link.transport->info().any_memory) some_read_any_.store(true);
  const std::lock_guard lock(mutex_);
  by_rank_[rank].store(peer.get(), std::memory_order_release);
  met_.push_back(std::move(peer));
  count_.fetch_add(1, std::memory_order_release);
  if (when_changed_) when_changed_();
}

void PeerLinks::fail(uint32_t rank, Status why) {
  const std::lock_guard lock(mutex_);
  failures_.emplace(rank, std::move(why));
  has_failures_.store(true, std::memory_order_release);
  if (when_changed_) when_changed_();
}

}  // namespace rdmacoll
