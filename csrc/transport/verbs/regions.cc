// VerbsTransport: regions, mine and peers'. Floor: transport/verbs. Thread: set-up.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/transport/verbs/device/errors.h"
#include "csrc/transport/verbs/transport.h"

namespace rdmacoll {

using verbs::OwnRegion;
using verbs::PartKey;
using verbs::RegionKey;
using verbs::RemoteRegion;

namespace {

// By peers; what polls see is ordered by completions.
unsigned access_flags(Access access) {
  unsigned flags = IBV_ACCESS_LOCAL_WRITE | static_cast<unsigned>(IBV_ACCESS_RELAXED_ORDERING);
  if (takes_puts(access)) flags |= IBV_ACCESS_REMOTE_WRITE;
  if (takes_gets(access)) flags |= IBV_ACCESS_REMOTE_READ;
  return flags;
}

// libibverbs hides registered memory from forked children, because theirs would be a copy, or the
// parent's. Shared memory is the same for both, and a user's child may read tensors there.
void show_to_children(std::byte* base, uint64_t bytes) {
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t into_page = reinterpret_cast<uint64_t>(base) % page_bytes;
  ::madvise(base - into_page, into_page + bytes, MADV_DOFORK);
}

}  // namespace

Result<std::string> VerbsTransport::register_region(RegionId id, const RegionMemory& memory) {
  auto made = std::make_unique<OwnRegion>();
  OwnRegion& region = *made;
  region.id = id;
  region.base = memory.base();
  region.bytes = memory.bytes;
  region.access = memory.access;
  region.memory = memory.segment;
  const auto address = reinterpret_cast<uint64_t>(region.base);
  region.registered = table().reg_mr_iova2(device_->pd(), region.base, region.bytes, address,
                                           access_flags(memory.access));
  if (region.registered == nullptr) return registration_error(errno, region.bytes, *device_);
  const uint32_t rkey = region.registered->rkey;
  count_registration();
  const bool is_users = memory.access != Access::Full;
  if (is_users) show_to_children(region.base, region.bytes);
  const std::lock_guard lock(mutex_);
  region.lease.generation = ++generations_;
  regions_.set(id, std::move(made));
  if (!has_short_key(memory.access)) {
    return encode(
        RegionKey{own_address_.process, id, region.lease.generation, address, memory.bytes, rkey});
  }
  const uint64_t pages = memory.bytes / PartKey::kPageBytes;
  RDMACOLL_CHECK(memory.bytes % PartKey::kPageBytes == 0 && pages <= UINT32_MAX);
  return encode(PartKey{address, id, rkey, static_cast<uint32_t>(pages)});
}

Status VerbsTransport::offer_region(PeerId id, RegionId region_id, uint64_t note) {
  RDMACOLL_RETURN_IF_ERROR(peer_status(id));
  const std::lock_guard lock(mutex_);
  errands_.offer(id, region_id, region_id == kNoRegion ? nullptr : regions_.at(region_id), note);
  return Status();
}

Result<Region> VerbsTransport::open_region(PeerId id, std::string_view bytes, Deadline) {
  Peer& peer = peer_at(id);
  if (bytes.size() == kShortKeyBytes) return open_part(peer, verbs::parse_part_key(bytes));
  auto parsed = verbs::parse_region_key(bytes);
  if (!parsed.ok()) return parsed.status();
  const RegionKey& key = parsed.value();
  if (key.owner != peer.address.process || key.region >= kMaxRegions) {
    return Status(StatusCode::InvalidArgument,
                  "the region key is not one of " + peer.address.who());
  }
  RDMACOLL_RETURN_IF_ERROR(peer_status(id));
  const std::lock_guard lock(mutex_);
  return peer.regions.open(key.region, {{key.bytes, key.generation}, key.address, key.rkey},
                           peer.address.who());
}

// In the data path: once it is open nothing is locked.
Result<Region> VerbsTransport::open_part(Peer& peer, const PartKey& key) {
  if (key.region >= kMaxRegions) {
    return Status(StatusCode::InvalidArgument,
                  "the region key is not one of " + peer.address.who());
  }
  if (const RemoteRegion* open = peer.regions.at(key.region)) {
    return Region{key.region, nullptr, open->bytes};
  }
  const std::lock_guard lock(mutex_);
  return peer.regions.open(key.region,
                           {{key.pages * PartKey::kPageBytes, 0}, key.address, key.rkey},
                           peer.address.who());
}

void VerbsTransport::close_region(PeerId id, RegionId region, std::string_view key_bytes) {
  std::optional<Generation> use;
  if (!key_bytes.empty()) {
    auto key = verbs::parse_region_key(key_bytes);
    if (!key.ok()) return;
    use = key.value().generation;
  }
  const std::lock_guard lock(mutex_);
  if (const auto closed = peer_at(id).regions.close(region, use)) {
    errands_.say_closed(id, region, *closed);
  }
}

// Its key opens nothing any more; the id stays taken until its readers have closed it.
void VerbsTransport::cut_off_region(RegionId id) { deregister(*regions_.at(id)); }

void VerbsTransport::deregister(OwnRegion& region) {
  if (region.registered != nullptr) table().dereg_mr(std::exchange(region.registered, nullptr));
}

void VerbsTransport::release_region(RegionId id, Release how) {
  const std::lock_guard lock(mutex_);
  OwnRegion* region = regions_.at(id);
  RDMACOLL_CHECK(region != nullptr && !region->lease.released);
  if (met_.count() == 0) {
    deregister(*region);
    static_cast<void>(regions_.take(id));  // nobody is met, so nobody drives this transport
    return;
  }
  errands_.release(id, region->lease, how);
}

// In the driver, by a notice.
void VerbsTransport::hear_offer(Peer& peer, const verbs::OfferNotice& offer) {
  const verbs::OfferNotice::Rest& rest = offer.rest;
  RegionOffer made{.peer = peer.id, .note = rest.note};
  if (offer.region != kNoRegion) {
    made.region = offer.region;
    made.key = encode(RegionKey{peer.address.process, offer.region, offer.generation, rest.address,
                                rest.bytes, rest.rkey});
  }
  {
    const std::lock_guard lock(mutex_);
    peer.handshake.note_heard();
    if (news_.add(std::move(made))) {
      if (offer.region != kNoRegion) peer.regions.note_offer(offer.region, offer.generation);
      return;
    }
  }
  lose(peer, PeerState::Broken, offers_too_much(peer.address.who()));
}

// In the driver, by a notice. Where a withdrawn region is open, the answer comes when it is closed.
void VerbsTransport::hear_of_region(Peer& peer, uint32_t notice, const verbs::RegionNotice& about) {
  if (about.region >= kMaxRegions) return;
  const std::lock_guard lock(mutex_);
  if (notice == verbs::Immediate::kRegionClosed) {
    OwnRegion* mine = regions_.at(about.region);
    if (mine == nullptr) return;
    mine->lease.closed(peer.id, about.generation);
    if (mine->lease.released) errands_.note();
  } else if (peer.regions.withdraw(about.region, about.generation)) {
    errands_.say_closed(peer.id, about.region, about.generation);
  }
}

}  // namespace rdmacoll
