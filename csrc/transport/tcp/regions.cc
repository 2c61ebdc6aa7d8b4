// TcpTransport: regions, mine and peers', and memory that is lent for a while. Floor:
// transport/tcp. Thread: set-up; what is lent the driver.
#include "csrc/base/check.h"
#include "csrc/transport/tcp/transport.h"

namespace rdmacoll {

using tcp::FrameHead;
using tcp::FrameKind;
using tcp::OpenedRegion;
using tcp::OwnRegion;
using tcp::PartKey;
using tcp::RegionKey;

Result<std::string> TcpTransport::register_region(RegionId id, const RegionMemory& memory) {
  auto made = std::make_unique<OwnRegion>();
  OwnRegion& region = *made;
  region.id = id;
  region.memory = memory.segment;
  region.base = memory.base();
  region.bytes = memory.bytes;
  region.holds_lines = memory.access == Access::Full;
  const std::lock_guard lock(mutex_);
  const Generation generation = region.lease.generation = ++generations_;
  regions_.set(id, std::move(made));
  if (memory.access == Access::PutOnly) return encode(PartKey{id, memory.bytes});
  return encode(RegionKey{own_address_.process, id, generation, memory.bytes});
}

Status TcpTransport::offer_region(PeerId id, RegionId region_id) {
  RDMACOLL_RETURN_IF_ERROR(peer_status(id));
  const std::lock_guard lock(mutex_);
  OwnRegion* region = regions_.at(region_id);
  RDMACOLL_CHECK(region != nullptr && !region->lease.released);
  region->lease.offered(id);
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
  auto key = tcp::parse_region_key(bytes);
  if (!key.ok()) return key.status();
  if (key.value().owner != peer.process) {
    return Status(StatusCode::InvalidArgument, "the region key is not one of " + peer.name);
  }
  RDMACOLL_RETURN_IF_ERROR(peer_status(id));
  return open_whole(peer, key.value());
}

// In the data path: once it is open nothing is locked. A part lives as long as the transport, so
// its generation says nothing.
Result<Region> TcpTransport::open_part(Peer& peer, const PartKey& key) {
  if (peer.regions.at(key.region) == nullptr) {
    const std::lock_guard lock(mutex_);
    if (peer.regions.at(key.region) == nullptr) {
      peer.regions.set(key.region, std::make_unique<OpenedRegion>(OpenedRegion{key.bytes, 0}));
    }
  }
  return Region{key.region, nullptr, peer.regions.at(key.region)->bytes};
}

Result<Region> TcpTransport::open_whole(Peer& peer, const RegionKey& key) {
  const Region opened{key.region, nullptr, key.bytes};
  const std::lock_guard lock(mutex_);
  if (const OpenedRegion* open = peer.regions.at(key.region)) {
    if (open->generation == key.generation) return opened;
    return Status(StatusCode::InvalidArgument,
                  "the key of a region of " + peer.name +
                      " belongs to an earlier or later use of its id than the region that is open");
  }
  if (peer.withdrawn.has(key.region, key.generation)) return withdrawn_by(peer.name);
  peer.regions.set(key.region,
                   std::make_unique<OpenedRegion>(OpenedRegion{key.bytes, key.generation}));
  return opened;
}

Placement TcpTransport::begin_placement(PeerId id, std::byte* data, uint64_t bytes) {
  return peer_at(id).is_self ? Placement{} : placements_.begin(id, data, bytes);
}

void TcpTransport::end_placement(const Placement& placement) {
  placements_.end(placement.id);
  for (PeerId id = 1; peers_.at(id) != nullptr; ++id) {
    for (const auto& stream : peers_.at(id)->streams) {
      if (stream->in.receives_into() == placement.id) stream->in.drop_payload();
    }
  }
}

void TcpTransport::close_region(PeerId id, RegionId region) {
  const std::lock_guard lock(mutex_);
  const auto open = peer_at(id).regions.take(region);
  if (open == nullptr) return;
  errands_.notices.push_back({id, FrameKind::Closed, region, open->generation});
  errands_.note();
}

void TcpTransport::release_region(RegionId id, Release how) {
  const std::lock_guard lock(mutex_);
  OwnRegion* region = regions_.at(id);
  RDMACOLL_CHECK(region != nullptr && !region->lease.released);
  if (ids_.size() == 1 && region->lease.readers.empty()) {
    static_cast<void>(regions_.take(id));  // nobody is met, so nobody drives this transport
    return;
  }
  region->lease.released = true;
  errands_.released.push_back(id);
  if (how == Release::Withdraw) {
    for (const PeerId reader : region->lease.readers) {
      errands_.notices.push_back({reader, FrameKind::Withdrawn, id, region->lease.generation});
    }
  }
  errands_.note();
}

// In the driver, by a notice. Where a withdrawn region is open, the answer comes when it is closed.
void TcpTransport::hear_of_region(Peer& peer, const FrameHead& notice, Generation generation) {
  const std::lock_guard lock(mutex_);
  if (notice.kind == FrameKind::Closed) {
    OwnRegion* mine = regions_.at(notice.region);
    if (mine == nullptr) return;
    mine->lease.closed(peer.id, generation);
    if (!mine->lease.released) return;
  } else {
    const OpenedRegion* open = peer.regions.at(notice.region);
    if (open != nullptr && open->generation == generation) return;
    peer.withdrawn.add(notice.region, generation);
    errands_.notices.push_back({peer.id, FrameKind::Closed, notice.region, generation});
  }
  errands_.note();
}

}  // namespace rdmacoll
