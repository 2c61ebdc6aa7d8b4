// VerbsTransport: what the driver does now and then, and the end.
// Floor: transport/verbs. Thread: the driver; shutdown() after it.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "csrc/transport/verbs/verbs_transport.h"

namespace rdmacoll {

using verbs::Immediate;
using verbs::VerbsRegion;

namespace {

constexpr int64_t kProbeEveryNs = 1'000'000'000;
// For what is on its way when this process leaves; a live peer's device takes it in microseconds.
constexpr int64_t kLeaveMs = 2'000;
constexpr unsigned kLookAgainUs = 50;

}  // namespace

void VerbsTransport::run_errands() {
  if (errands_.exchange(false)) {
    send_notices();
    deregister_released();
    Status failure;
    {
      const std::lock_guard lock(mutex_);
      failure = device_failure_;
    }
    for (PeerId id = 0; !failure.ok() && peers_.at(id) != nullptr; ++id) {
      lose(*peers_.at(id), PeerState::Broken, failure);
    }
  }
  const int64_t now_ns = clock_.now_ns();
  if (now_ns < next_probe_ns_) return;
  next_probe_ns_ = now_ns + kProbeEveryNs;
  probe_silent_peers();
}

// That regions of peers were closed, behind everything that was put to them.
void VerbsTransport::send_notices() {
  std::vector<Notice> due;
  {
    const std::lock_guard lock(mutex_);
    due.swap(notices_);
  }
  for (const Notice& notice : due) {
    Peer& peer = peer_at(notice.peer);
    if (!peer.alive() || send_notice(peer, Immediate::kRegionClosed | notice.closed)) continue;
    const std::lock_guard lock(mutex_);
    notices_.push_back(notice);
    errands_.store(true, std::memory_order_relaxed);
  }
}

void VerbsTransport::deregister_released() {
  const std::lock_guard lock(mutex_);
  for (RegionId id = 0; id < kMaxRegions; ++id) {
    VerbsRegion* region = regions_.at(id);
    if (region == nullptr || !region->released) continue;
    std::erase_if(region->readers, [&](PeerId reader) { return !peers_.at(reader)->alive(); });
    if (!region->readers.empty()) continue;
    table_.dereg_mr(region->registered);
    regions_.take(id);
  }
}

// A peer that has died says nothing, and a wait for it sends nothing: ask its device.
void VerbsTransport::probe_silent_peers() {
  for (PeerId id = 0; peers_.at(id) != nullptr; ++id) {
    Peer& peer = *peers_.at(id);
    verbs::QueuePair* first = peer.stripes[0].get();
    if (!std::exchange(peer.heard, false) && peer.alive() && !peer.is_self && first->has_room(1)) {
      first->probe(peer.its_mailbox);
      ring(peer, *first);
    }
  }
}

// Behind all that was sent to the peers. Whether all of them have it, or have left themselves.
bool VerbsTransport::say_goodbye() {
  bool all_have_it = true;
  for (PeerId id = 0; peers_.at(id) != nullptr; ++id) {
    Peer& peer = *peers_.at(id);
    if (!peer.alive() || peer.is_self) continue;
    if (!peer.said_goodbye) {
      peer.said_goodbye = send_notice(peer, Immediate::kGoodbye, true);
    }
    all_have_it &= peer.said_goodbye && peer.stripes[0]->idle();
  }
  return all_have_it;
}

void VerbsTransport::close_device() {
  doorman_.reset();
  for (PeerId id = 0; peers_.at(id) != nullptr; ++id) {
    const std::unique_ptr<Peer> peer = peers_.take(id);
    peer->stripes.clear();
    discard(*peer);
  }
  for (RegionId id = 0; id < kMaxRegions; ++id) {
    if (const auto region = regions_.take(id)) table_.dereg_mr(region->registered);
  }
  if (completions_ != nullptr) table_.destroy_cq(std::exchange(completions_, nullptr));
  if (channel_ != nullptr) table_.destroy_comp_channel(std::exchange(channel_, nullptr));
  device_.reset();
}

void VerbsTransport::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
  }
  if (completions_ != nullptr) {
    const Deadline deadline = Deadline::after_ms(clock_, kLeaveMs);
    while (!say_goodbye() && !deadline.passed(clock_)) {
      poll();
      ::usleep(kLookAgainUs);
    }
  }
  close_device();
}

}  // namespace rdmacoll
