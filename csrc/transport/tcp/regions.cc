// TcpTransport: regions, mine and peers', and memory that is lent for a while. Floor:
// transport/tcp. Thread: set-up; what is lent the driver.
#include "csrc/base/check.h"
#include "csrc/transport/tcp/transport.h"

namespace rdmacoll {

using tcp::FrameHead;
using tcp::FrameKind;
using tcp::OwnRegion;
using tcp::PartKey;
using tcp::RegionKey;

Result<std::string> TcpTransport::register_region(RegionId id, const RegionMemory& memory) {
  auto made = std::make_unique<OwnRegion>();
  OwnRegion& region = *made;
  region.id = id;
  region.memory = memory.segment;
  region.offset = memory.offset;
  region.base = memory.base();
  region.bytes = memory.bytes;
  region.access = memory.access;
  const std::lock_guard lock(mutex_);
  const Generation generation = region.lease.generation = ++generations_;
  regions_.set(id, std::move(made));
  if (has_short_key(memory.access)) return encode(PartKey{id, memory.bytes});
  return encode(RegionKey{own_address_.process, id, generation, memory.bytes});
}

Status TcpTransport::offer_region(PeerId id, RegionId region_id, uint64_t note) {
  RDMACOLL_RETURN_IF_ERROR(peer_status(id));
  const std::lock_guard lock(mutex_);
  errands_.offer(id, region_id, region_id == kNoRegion ? nullptr : regions_.at(region_id), note);
  return Status();
}

Result<Region> TcpTransport::open_region(PeerId id, std::string_view bytes, Deadline) {
  Peer& peer = peer_at(id);
  if (const auto lent = tcp::parse_placement_key(bytes)) {
    peer.placements[lent->slot] = {lent->bytes, lent->use};
    return Region{tcp::kFirstPlacement + lent->slot, nullptr, lent->bytes};
  }
  if (bytes.size() == kShortKeyBytes) {
    auto part = tcp::parse_part_key(bytes);
    if (!part.ok()) return part.status();
    return open_part(peer, part.value());
  }
  auto parsed = tcp::parse_region_key(bytes);
  if (!parsed.ok()) return parsed.status();
  const RegionKey& key = parsed.value();
  if (key.owner != peer.process) {
    return Status(StatusCode::InvalidArgument, "the region key is not one of " + peer.name);
  }
  RDMACOLL_RETURN_IF_ERROR(peer_status(id));
  const std::lock_guard lock(mutex_);
  return peer.regions.open(key.region, {key.bytes, key.generation}, peer.name);
}

// In the data path: once it is open nothing is locked. A part lives as long as the transport, so
// its generation says nothing.
Result<Region> TcpTransport::open_part(Peer& peer, const PartKey& key) {
  if (const OpenedRegion* open = peer.regions.at(key.region)) {
    return Region{key.region, nullptr, open->bytes};
  }
  const std::lock_guard lock(mutex_);
  return peer.regions.open(key.region, {key.bytes, 0}, peer.name);
}

Placement TcpTransport::begin_placement(PeerId id, std::byte* data, uint64_t bytes) {
  return peer_at(id).is_self ? Placement{} : placements_.begin(id, data, bytes);
}

void TcpTransport::end_placement(const Placement& placement) {
  placements_.end(placement.id);
  drop_payload_into(placement.id);
}

void TcpTransport::close_region(PeerId id, RegionId region, std::string_view key_bytes) {
  std::optional<Generation> use;
  if (!key_bytes.empty()) {
    auto key = tcp::parse_region_key(key_bytes);
    if (!key.ok()) return;
    use = key.value().generation;
  }
  const std::lock_guard lock(mutex_);
  if (const auto closed = peer_at(id).regions.close(region, use)) {
    errands_.say_closed(id, region, *closed);
  }
}

// What peers get of it, they get of its own pages, wherever these are mapped now.
void TcpTransport::cut_off_region(RegionId id) {
  OwnRegion& region = *regions_.at(id);
  region.is_cut_off = true;
  region.base = region.memory->data() + region.offset;
  drop_payload_into(id);
}

void TcpTransport::drop_payload_into(RegionId region) {
  for (PeerId id = 1; peers_.at(id) != nullptr; ++id) {
    for (const auto& stream : peers_.at(id)->streams) {
      if (stream->in.receives_into() == region) stream->in.drop_payload();
    }
  }
}

void TcpTransport::release_region(RegionId id, Release how) {
  const std::lock_guard lock(mutex_);
  OwnRegion* region = regions_.at(id);
  RDMACOLL_CHECK(region != nullptr && !region->lease.released);
  if (ids_.size() == 1 && region->lease.readers.empty()) {
    static_cast<void>(regions_.take(id));  // nobody is met, so nobody drives this transport
    return;
  }
  errands_.release(id, region->lease, how);
}

// In the driver, by a notice. False: it makes no sense, or the peer is lost, as it has offered too
// much.
bool TcpTransport::hear_offer(Peer& peer, RegionId region, const tcp::OfferBody& offer) {
  const bool is_note = region == kNoRegion;
  if (offer.note == kNoNote || (!is_note && region >= kMaxRegions)) return false;
  RegionOffer made{.peer = peer.id, .note = offer.note};
  if (!is_note) {
    made.region = region;
    made.key = encode(RegionKey{peer.process, region, offer.generation, offer.bytes});
  }
  {
    const std::lock_guard lock(mutex_);
    if (news_.add(std::move(made))) {
      if (!is_note) peer.regions.note_offer(region, offer.generation);
      return true;
    }
  }
  lose(peer, PeerState::Broken, offers_too_much(peer.name));
  return false;
}

// In the driver, by a notice. Where a withdrawn region is open, the answer comes when it is closed.
void TcpTransport::hear_of_region(Peer& peer, const FrameHead& notice, Generation generation) {
  const std::lock_guard lock(mutex_);
  if (notice.kind == FrameKind::Closed) {
    OwnRegion* mine = regions_.at(notice.region);
    if (mine == nullptr) return;
    mine->lease.closed(peer.id, generation);
    if (mine->lease.released) errands_.note();
  } else if (peer.regions.withdraw(notice.region, generation)) {
    errands_.say_closed(peer.id, notice.region, generation);
  }
}

}  // namespace rdmacoll
