// TcpTransport: what is done now and then. Floor: transport/tcp. Thread: the driver.
#include <algorithm>

#include "csrc/transport/tcp/transport.h"

namespace rdmacoll {

using tcp::FrameHead;
using tcp::FrameKind;
using tcp::OwnRegion;

namespace {

constexpr int64_t kLookForSilenceNs = 250'000'000;
// When one of its streams has ended: for so long the first may bring what was said before.
constexpr int64_t kRestOfPeerNs = 1'000'000'000;

}  // namespace

void TcpTransport::run_errands() {
  if (errands_.take()) {
    send_notices();
    forget_released();
  }
  if (errands_.is_time_again(clock_.now_ns(), kLookForSilenceNs)) look_for_silence();
}

void TcpTransport::send_notices() {
  std::vector<Notice> notices;
  {
    const std::lock_guard lock(mutex_);
    notices.swap(errands_.notices);
  }
  std::erase_if(notices, [this](const Notice& notice) { return send_notice(notice); });
  if (notices.empty()) return;
  errands_.note();
  const std::lock_guard lock(mutex_);
  errands_.notices.insert(errands_.notices.begin(), notices.begin(), notices.end());
}

// False: there is no room now.
bool TcpTransport::send_notice(const Notice& notice) {
  Peer& peer = peer_at(notice.peer);
  if (!peer.alive()) return true;
  if (!peer.is_self && !peer.streams[0]->out.has_room(2)) return false;
  if (notice.kind == Notice::Kind::Offered) {
    send_offer(peer, notice);
    return true;
  }
  const bool closed = notice.kind == Notice::Kind::Closed;
  const FrameHead head{.kind = closed ? FrameKind::Closed : FrameKind::Withdrawn,
                       .region = notice.region};
  if (peer.is_self) {
    hear_of_region(peer, head, notice.generation);
    return true;
  }
  const tcp::RegionNotice body{notice.generation};
  send(peer, head, &body, sizeof(body));
  return true;
}

void TcpTransport::send_offer(Peer& peer, const Notice& notice) {
  tcp::OfferBody offer{notice.note, notice.generation, 0};
  if (notice.region != kNoRegion) {
    const OwnRegion* region = regions_.at(notice.region);
    // A peer that closes what it has not heard of does not hear of it.
    if (region == nullptr || region->lease.generation != notice.generation) return;
    offer.bytes = region->bytes;
  }
  if (peer.is_self) {
    hear_offer(peer, notice.region, offer);
  } else {
    send(peer, {.kind = FrameKind::Offered, .region = notice.region}, &offer, sizeof(offer));
  }
}

void TcpTransport::send(Peer& peer, const FrameHead& head, const void* body, size_t bytes) {
  push_control(peer, head, body, bytes);
  write(peer);
  count_control_message();
}

void TcpTransport::forget_released() {
  const std::lock_guard lock(mutex_);
  std::erase_if(errands_.released, [&](RegionId id) {
    if (is_in_use(*regions_.at(id))) return false;
    static_cast<void>(regions_.take(id));
    return true;
  });
}

// Whether a living peer may still write to a released region, or something of this process still
// reads or writes it: what it sends out of the region, the peers' gets among that, and what its own
// gets bring.
bool TcpTransport::is_in_use(OwnRegion& region) {
  std::erase_if(region.lease.readers, [&](PeerId reader) { return !peers_.at(reader)->alive(); });
  if (!region.lease.readers.empty()) return true;
  if (!region.uses) {
    region.uses.emplace();
    for (PeerId id = 0; peers_.at(id) != nullptr; ++id) {
      region.uses->push_back(peers_.at(id)->sends.newest());
      region.uses->push_back(peers_.at(id)->gets.transfers.newest());
    }
  }
  std::erase_if(*region.uses, [](const Ticket& use) { return use.done(); });
  bool in_use = !region.uses->empty();
  for (PeerId id = 0; peers_.at(id) != nullptr; ++id) {
    for (const auto& stream : peers_.at(id)->streams) {
      in_use |= peers_.at(id)->alive() && stream->in.receives_into() == region.id;
    }
  }
  if (in_use) errands_.note();
  return in_use;
}

// The kernel asks a peer's host that owes nothing whether it is there (set_up_connection()). Where
// the host owes an answer this looks how long it has given none. One whose process takes nothing is
// asked ever more seldom whether it has room, and owes nothing in between.
void TcpTransport::look_for_silence() {
  const int64_t now_ns = clock_.now_ns();
  for (PeerId id = 1; peers_.at(id) != nullptr; ++id) {
    Peer& peer = *peers_.at(id);
    if (!peer.alive()) continue;
    const int fd = peer.streams[0]->fd.get();
    if (peer.ended_since_ns != 0 && now_ns - peer.ended_since_ns >= kRestOfPeerNs &&
        (peer.streams[0]->in.waits() || !tcp::has_unread(fd))) {
      lose_at_end(peer, 0);
      continue;
    }
    const int64_t unanswered_ms = tcp::unanswered_ms(fd);
    if (unanswered_ms == 0) peer.owes_since_ns = 0;
    if (unanswered_ms > 0 && peer.owes_since_ns == 0) peer.owes_since_ns = now_ns;
    const int64_t silent_ms = std::min((now_ns - peer.owes_since_ns) / 1'000'000, unanswered_ms);
    if (silent_ms >= config_.timeout_ms) {
      lose(peer, PeerState::Gone,
           Status(StatusCode::PeerFailed,
                  peer.name + " is lost: its host has acknowledged nothing for " +
                      std::to_string(silent_ms) + " ms; it is down, or cut off"));
    }
  }
}

}  // namespace rdmacoll
