// VerbsTransport: put, get, signal. No lock, no allocation, no system call.
// Floor: transport/verbs. Thread: the driver.
#include <algorithm>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/transport/verbs/device/errors.h"
#include "csrc/transport/verbs/transport.h"

namespace rdmacoll {

using verbs::Immediate;
using verbs::QueuePair;
using verbs::RemoteRegion;
using verbs::SignalRecord;
using verbs::SignalRing;

struct VerbsTransport::Transfer {
  bool is_get;
  LocalSlice local;
  QueuePair::Remote remote;
};

VerbsTransport::Peer& VerbsTransport::peer_at(PeerId id) const {
  Peer* peer = peers_.at(id);
  RDMACOLL_CHECK(peer != nullptr);
  return *peer;
}

const RemoteRegion& VerbsTransport::opened(const Peer& peer, RegionId region) const {
  const RemoteRegion* open = peer.regions.at(region);
  RDMACOLL_CHECK(open != nullptr);
  return *open;
}

uint32_t VerbsTransport::local_key(const LocalSlice& slice) const {
  const verbs::OwnRegion* region = regions_.at(slice.region);
  RDMACOLL_CHECK(region != nullptr && slice.data >= region->base &&
                 slice.data + slice.bytes <= region->base + region->bytes);
  return region->registered->lkey;
}

Posted VerbsTransport::put(PeerId id, uint8_t, LocalSlice source, RemoteSlice destination,
                           Ticket* ticket) {
  Peer& peer = peer_at(id);
  const RemoteRegion& region = opened(peer, destination.region);
  RDMACOLL_CHECK(source.bytes == destination.bytes &&
                 region.holds(destination.offset, destination.bytes));
  return transfer(peer, {false, source, {region.address + destination.offset, region.rkey}},
                  ticket);
}

Posted VerbsTransport::get(PeerId id, uint8_t, RemoteSlice source, LocalSlice destination,
                           Ticket* ticket) {
  Peer& peer = peer_at(id);
  const RemoteRegion& region = opened(peer, source.region);
  RDMACOLL_CHECK(source.bytes == destination.bytes && region.holds(source.offset, source.bytes));
  return transfer(peer, {true, destination, {region.address + source.offset, region.rkey}}, ticket);
}

// Large ones are cut into one part per stripe.
Posted VerbsTransport::transfer(Peer& peer, const Transfer& what, Ticket* ticket) {
  const uint64_t bytes = what.local.bytes;
  if (!peer.alive() || bytes == 0) return Posted::Done;
  const uint64_t stripes = bytes >= verbs::kStripeBytes ? peer.stripes.size() : 1;
  const uint64_t part = (bytes + stripes - 1) / stripes + verbs::kStripeAlignment - 1;
  const uint64_t part_bytes =
      stripes == 1 ? bytes : part / verbs::kStripeAlignment * verbs::kStripeAlignment;
  for (uint64_t i = 0; i < stripes; ++i) {
    if (!peer.stripes[i]->has_room(1)) return Posted::Full;
  }
  const uint32_t lkey = local_key(what.local);
  ++peer.transfers.posted;
  for (uint64_t i = 0, offset = 0; offset < bytes; ++i, offset += part_bytes) {
    const auto piece = static_cast<uint32_t>(std::min(part_bytes, bytes - offset));
    const QueuePair::Remote remote{what.remote.address + offset, what.remote.rkey};
    QueuePair& stripe = *peer.stripes[i];
    if (what.is_get) {
      stripe.read(what.local.data + offset, piece, lkey, remote, peer.transfers.posted);
    } else {
      stripe.write(what.local.data + offset, piece, lkey, remote, peer.transfers.posted);
      if (i > 0) peer.dirty_stripes |= static_cast<uint8_t>(1u << i);
    }
  }
  to_ring(peer);
  *ticket = peer.transfers.newest();
  return Posted::Pending;
}

// Room in the peer's receive queue, and in my send queues for the signal and its marks.
bool VerbsTransport::may_signal(Peer& peer) {
  if (peer.out.is_full()) {
    peer.out.returned = peer.own_ring.ring().told_room(peer.out.returned);
    if (peer.out.is_full()) return false;
  }
  if (!peer.stripes[0]->has_room(1)) return false;
  for (size_t i = 1; i < peer.stripes.size(); ++i) {
    if ((peer.dirty_stripes >> i & 1) != 0 && !peer.stripes[i]->has_room(1)) return false;
  }
  return true;
}

Posted VerbsTransport::signal(PeerId id, uint8_t, RemoteSlice slice, uint64_t counter,
                              const Header& header) {
  Peer& peer = peer_at(id);
  const RemoteRegion& region = opened(peer, slice.region);
  RDMACOLL_CHECK(slice.offset % kLineBytes == 0 && region.holds(slice.offset, kLineBytes));
  RDMACOLL_CHECK(header.inline_bytes <= kInlineBytes);
  if (!peer.alive()) return Posted::Done;
  if (!may_signal(peer)) {
    to_ring(peer);  // what fills the queues may still wait for its call
    return Posted::Full;
  }
  for (size_t i = 1; peer.dirty_stripes >> i != 0; ++i) {
    if ((peer.dirty_stripes >> i & 1) == 0) continue;
    peer.stripes[i]->notify({Immediate::kNoticeRegion, Immediate::kMark});
    if (!ring(peer, *peer.stripes[i])) return Posted::Done;
  }
  SignalRecord record;
  record.counter = counter;
  record.signature = header.signature;
  record.length_and_sequence = header.length_and_sequence;
  record.returned = static_cast<uint32_t>(peer.in.returned);
  record.stripes = peer.dirty_stripes;
  record.inline_bytes = static_cast<uint8_t>(header.inline_bytes);
  record.credit = header.credit;
  record.reserved = 0;
  std::memcpy(record.inline_data, header.inline_data, header.inline_bytes);
  const Immediate immediate{slice.region, static_cast<uint32_t>(slice.offset / kLineBytes)};
  peer.stripes[0]->write_signal(
      record, {peer.its_ring.address + peer.out.offset(), peer.its_ring.rkey}, immediate);
  peer.in.told = peer.in.returned;
  peer.dirty_stripes = 0;
  ++peer.out.sent;
  ring(peer, *peer.stripes[0]);
  return Posted::Done;
}

bool VerbsTransport::send_notice(Peer& peer, uint32_t notice, const SignalRecord* record) {
  if (!may_signal(peer)) return false;
  const Immediate immediate{Immediate::kNoticeRegion, notice};
  if (record != nullptr) {
    peer.stripes[0]->write_signal(
        *record, {peer.its_ring.address + peer.out.offset(), peer.its_ring.rkey}, immediate);
  } else {
    peer.stripes[0]->notify(immediate);
    peer.stripes[0]->want_completion();  // as nothing follows that would ask for one
  }
  count_control_message();
  ++peer.out.sent;
  ring(peer, *peer.stripes[0]);
  return true;
}

void VerbsTransport::to_ring(Peer& peer) {
  if (peer.chained) return;
  peer.chained = true;
  chained_.push_back(&peer);
}

bool VerbsTransport::ring(Peer& peer, QueuePair& queue_pair) {
  const int error = queue_pair.ring();
  if (error == 0) [[likely]]
    return true;
  lose(peer, PeerState::Broken, call_error("sending to " + peer.address.who(), error, *device_));
  return false;
}

}  // namespace rdmacoll
