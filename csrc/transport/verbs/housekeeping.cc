// VerbsTransport: what the driver does now and then, and the end.
// Floor: transport/verbs. Thread: the driver; leave() after it.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "csrc/transport/verbs/device/errors.h"
#include "csrc/transport/verbs/transport.h"

namespace rdmacoll {

using verbs::Immediate;
using verbs::OwnRegion;
using verbs::SignalRecord;

namespace {

constexpr int64_t kProbeEveryNs = 1'000'000'000;
// Looks, each a second after the one before: so a process that was stopped itself counts none.
constexpr int64_t kMostUnheardLooks = 20;
// For what is on its way when this process leaves; a live peer's device takes it in microseconds.
constexpr int64_t kLeaveMs = 2'000;
constexpr unsigned kLookAgainUs = 50;

}  // namespace

void VerbsTransport::run_errands() {
  if (errands_.take()) {
    send_notices();
    deregister_released();
    Status failure;
    {
      const std::lock_guard lock(mutex_);
      failure = failures_.device;
    }
    for (PeerId id = 0; !failure.ok() && peers_.at(id) != nullptr; ++id) {
      lose(*peers_.at(id), PeerState::Broken, failure);
    }
  }
  if (errands_.is_time_again(clock_.now_ns(), kProbeEveryNs)) probe_silent_peers();
}

// In order: none goes before one to the same peer that has to wait.
void VerbsTransport::send_notices() {
  std::vector<Notice> due;
  {
    const std::lock_guard lock(mutex_);
    due.swap(errands_.notices);
  }
  std::set<PeerId> waiting;
  std::erase_if(due, [&](Notice& notice) {
    Peer& peer = peer_at(notice.peer);
    if (!peer.alive()) return true;
    if (!waiting.contains(notice.peer) && send_notice(peer, notice)) return true;
    waiting.insert(notice.peer);
    return false;
  });
  if (due.empty()) return;
  errands_.note();
  const std::lock_guard lock(mutex_);
  errands_.notices.insert(errands_.notices.begin(), due.begin(), due.end());
}

// False: not yet. A notice comes after everything that was sent to the peer or read from it. It
// follows by itself what went over its own stripe; what went over others, and what is read, must be
// done before. Not so an offer, which ends nothing.
bool VerbsTransport::send_notice(Peer& peer, Notice& notice) {
  if (notice.kind == Notice::Kind::Offered) return send_offer(peer, notice);
  if (!notice.follows) notice.follows = peer.transfers.newest();
  if (!notice.follows->done()) return false;
  const SignalRecord about = verbs::RegionNotice{notice.region, notice.generation}.record();
  const bool closed = notice.kind == Notice::Kind::Closed;
  return send_notice(peer, closed ? Immediate::kRegionClosed : Immediate::kRegionWithdrawn, &about);
}

bool VerbsTransport::send_offer(Peer& peer, const Notice& notice) {
  verbs::OfferNotice offer{notice.region, notice.generation, {.note = notice.note}};
  if (notice.region != kNoRegion) {
    const OwnRegion* region = regions_.at(notice.region);
    // A peer that closes what it has not heard of does not hear of it.
    if (region == nullptr || region->lease.generation != notice.generation) return true;
    offer.rest.address = reinterpret_cast<uint64_t>(region->base);
    offer.rest.bytes = region->bytes;
    offer.rest.rkey = region->registered->rkey;
  }
  const SignalRecord record = offer.record();
  if (!send_notice(peer, Immediate::kRegionOffered, &record)) return false;
  // A process that does nothing does not poll: its listener has it look.
  const std::lock_guard lock(mutex_);
  ++peer.handshake.offers_made;
  if (!peer.is_self) say_hello(peer);
  return true;
}

void VerbsTransport::deregister_released() {
  const std::lock_guard lock(mutex_);
  std::erase_if(errands_.released, [&](RegionId id) {
    if (is_in_use(*regions_.at(id))) return false;
    const auto region = regions_.take(id);
    deregister(*region);
    return true;
  });
}

// Whether a living peer may still write to a released region, or a put or get of this process that
// was under way when it was released still uses it.
bool VerbsTransport::is_in_use(OwnRegion& region) {
  std::erase_if(region.lease.readers, [&](PeerId reader) { return !peers_.at(reader)->alive(); });
  if (!region.uses) {
    region.uses.emplace();
    for (PeerId id = 0; peers_.at(id) != nullptr; ++id) {
      region.uses->push_back(peers_.at(id)->transfers.newest());
    }
  }
  std::erase_if(*region.uses, [](const Ticket& use) { return use.done(); });
  if (!region.uses->empty()) errands_.note();
  return !region.lease.readers.empty() || !region.uses->empty();
}

// A peer that has died says nothing, and a wait for it sends nothing: ask its device. This host's
// device says how that has ended, if it does anything.
void VerbsTransport::probe_silent_peers() {
  const int64_t most_looks =
      std::max(kMostUnheardLooks, static_cast<int64_t>(std::ceil(2 * config_.no_answer_s())));
  for (PeerId id = 0; peers_.at(id) != nullptr; ++id) {
    Peer& peer = *peers_.at(id);
    verbs::QueuePair* first = peer.stripes[0].get();
    if (!peer.alive() || peer.is_self) continue;
    if (std::exchange(peer.heard, false)) {
      peer.unheard_looks = 0;
      continue;
    }
    if (++peer.unheard_looks > most_looks) {
      lose(peer, PeerState::Broken, stands_still(peer.address.who(), *device_, peer.unheard_looks));
    } else if (first->has_room(1)) {
      first->probe(peer.its_ring);
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
    if (!peer.said_goodbye && peer.transfers.newest().done()) {
      peer.said_goodbye = send_notice(peer, Immediate::kGoodbye);
    }
    all_have_it &= peer.said_goodbye && peer.stripes[0]->idle();
  }
  return all_have_it;
}

void VerbsTransport::close_device() {
  listener_.reset();
  for (PeerId id = 0; peers_.at(id) != nullptr; ++id) {
    const std::unique_ptr<Peer> peer = peers_.take(id);
    peer->stripes.clear();
    discard(*peer);
  }
  for (RegionId id = 0; id < kMaxRegions; ++id) {
    if (const auto region = regions_.take(id)) deregister(*region);
  }
  completions_.close();
  device_.reset();
}

void VerbsTransport::leave() {
  {
    const std::lock_guard lock(mutex_);
    failures_.listener = Status(StatusCode::Aborted, "this process leaves");
  }
  if (completions_.is_open()) {
    const Deadline deadline = Deadline::after_ms(clock_, kLeaveMs);
    while (!say_goodbye() && !deadline.passed(clock_)) {
      poll();
      ::usleep(kLookAgainUs);
    }
  }
  close_device();
}

}  // namespace rdmacoll
