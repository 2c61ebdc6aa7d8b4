// VerbsTransport: regions, mine and peers'. Floor: transport/verbs. Thread: set-up.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "csrc/base/check.h"
#include "csrc/transport/verbs/device/errors.h"
#include "csrc/transport/verbs/transport.h"

namespace rdmacoll {

using verbs::OpenedRegion;
using verbs::VerbsKey;
using verbs::VerbsRegion;

namespace {

// By peers; what polls see is ordered by completions.
constexpr unsigned kWritable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                               static_cast<unsigned>(IBV_ACCESS_RELAXED_ORDERING);

// What a short key holds. Parts are whole pages.
struct PartWire {
  uint64_t address;
  uint32_t rkey;
  uint32_t pages;
};
static_assert(sizeof(PartWire) == sizeof(ShortKey));
constexpr uint64_t kPageBytes = 4096;

// libibverbs hides registered memory from forked children, because theirs would be a copy, or the
// parent's. Shared memory is the same for both, and a user's child may read tensors there.
void show_to_children(std::byte* base, uint64_t bytes) {
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t into_page = reinterpret_cast<uint64_t>(base) % page_bytes;
  ::madvise(base - into_page, into_page + bytes, MADV_DOFORK);
}

}  // namespace

Status VerbsTransport::register_region(RegionId id, std::shared_ptr<SharedSegment> memory) {
  auto region = std::make_unique<VerbsRegion>();
  region->id = id;
  region->base = memory->data();
  region->bytes = memory->bytes();
  region->memory = std::move(memory);
  return add_region(std::move(region), kWritable | IBV_ACCESS_REMOTE_READ);
}

Status VerbsTransport::register_part(RegionId id, std::shared_ptr<SharedSegment> memory,
                                     uint64_t offset, uint64_t bytes) {
  auto region = std::make_unique<VerbsRegion>();
  region->id = id;
  region->base = memory->data() + offset;
  region->bytes = bytes;
  region->is_part = true;
  region->memory = std::move(memory);
  std::byte* const base = region->base;
  RDMACOLL_RETURN_IF_ERROR(add_region(std::move(region), kWritable));
  show_to_children(base, bytes);
  return Status();
}

Status VerbsTransport::add_region(std::unique_ptr<VerbsRegion> region, unsigned access) {
  region->registered = table_.reg_mr_iova2(device_->pd(), region->base, region->bytes,
                                           reinterpret_cast<uint64_t>(region->base), access);
  if (region->registered == nullptr) return registration_error(errno, region->bytes, *device_);
  const std::lock_guard lock(mutex_);
  ++registrations_;
  const RegionId id = region->id;
  region->lease.generation = ++generations_;
  regions_.set(id, std::move(region));
  return Status();
}

std::string VerbsTransport::region_key(RegionId id) const {
  const std::lock_guard lock(mutex_);
  const VerbsRegion* region = regions_.at(id);
  RDMACOLL_CHECK(region != nullptr && !region->lease.released);
  return encode(VerbsKey{card_.process, id, region->lease.generation,
                         reinterpret_cast<uint64_t>(region->base), region->bytes,
                         region->registered->rkey});
}

Status VerbsTransport::offer_region(PeerId id, RegionId region_id) {
  if (const Status status = peer_status(id); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  VerbsRegion* region = regions_.at(region_id);
  RDMACOLL_CHECK(region != nullptr && !region->lease.released);
  region->lease.offered(id);
  return Status();
}

Status VerbsTransport::open_region(PeerId id, const std::string& bytes, Deadline) {
  auto parsed = verbs::parse_verbs_key(bytes);
  if (!parsed.ok()) return parsed.status();
  const VerbsKey& key = parsed.value();
  Peer& peer = peer_at(id);
  if (key.owner != peer.card.process || key.region >= kMaxRegions) {
    return Status(StatusCode::InvalidArgument, "the region key is not one of " + peer.card.who());
  }
  if (const Status status = peer_status(id); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  if (const OpenedRegion* open = peer.regions.at(key.region)) {
    if (open->generation == key.generation) return Status();
    return Status(StatusCode::InvalidArgument,
                  "the key of a region of " + peer.card.who() +
                      " belongs to an earlier or later use of its id than the region that is open");
  }
  if (peer.withdrawn.has(key.region, key.generation)) return withdrawn_by(peer.card.who());
  peer.regions.set(key.region, std::make_unique<OpenedRegion>(
                                   OpenedRegion{key.address, key.bytes, key.rkey, key.generation}));
  return Status();
}

uint64_t VerbsTransport::opened_bytes(PeerId id, RegionId region) const {
  const OpenedRegion* open = peer_at(id).regions.at(region);
  return open != nullptr ? open->bytes : 0;
}

bool VerbsTransport::short_key(RegionId id, ShortKey* key) const {
  const VerbsRegion* part = regions_.at(id);
  if (part == nullptr || !part->is_part || part->bytes / kPageBytes > UINT32_MAX) return false;
  *key = std::bit_cast<ShortKey>(PartWire{reinterpret_cast<uint64_t>(part->base),
                                          part->registered->rkey,
                                          static_cast<uint32_t>(part->bytes / kPageBytes)});
  return true;
}

bool VerbsTransport::open_by_short_key(PeerId id, RegionId part, const ShortKey& key) {
  Peer& peer = peer_at(id);
  if (peer.regions.at(part) != nullptr) return true;
  if (part >= kMaxRegions) return false;
  const auto wire = std::bit_cast<PartWire>(key);
  const std::lock_guard lock(mutex_);
  if (peer.regions.at(part) == nullptr) {
    peer.regions.set(part, std::make_unique<OpenedRegion>(
                               OpenedRegion{wire.address, wire.pages * kPageBytes, wire.rkey, 0}));
  }
  return true;
}

void VerbsTransport::close_region(PeerId id, RegionId region) {
  const std::lock_guard lock(mutex_);
  const auto open = peer_at(id).regions.take(region);
  if (open == nullptr) return;
  notices_.push_back({id, verbs::Immediate::kRegionClosed, {region, open->generation}});
  errands_.store(true, std::memory_order_relaxed);
}

void VerbsTransport::release_region(RegionId id) {
  const std::lock_guard lock(mutex_);
  VerbsRegion* region = regions_.at(id);
  RDMACOLL_CHECK(region != nullptr && !region->lease.released);
  region->lease.released = true;
  released_.push_back(id);
  errands_.store(true, std::memory_order_relaxed);
}

void VerbsTransport::withdraw_region(RegionId id) {
  const std::lock_guard lock(mutex_);
  const VerbsRegion* region = regions_.at(id);
  RDMACOLL_CHECK(region != nullptr && !region->lease.released);
  for (const PeerId reader : region->lease.readers) {
    notices_.push_back(
        {reader, verbs::Immediate::kRegionWithdrawn, {id, region->lease.generation}});
  }
  errands_.store(true, std::memory_order_relaxed);
}

// In the driver, by a notice. Where a withdrawn region is open, the answer comes when it is closed.
void VerbsTransport::hear_of_region(Peer& peer, uint32_t notice, const verbs::RegionNotice& about) {
  if (about.region >= kMaxRegions) return;
  const std::lock_guard lock(mutex_);
  if (notice == verbs::Immediate::kRegionClosed) {
    VerbsRegion* mine = regions_.at(about.region);
    if (mine == nullptr) return;
    mine->lease.closed(peer.id, about.generation);
    if (!mine->lease.released) return;
  } else {
    const OpenedRegion* open = peer.regions.at(about.region);
    if (open != nullptr && open->generation == about.generation) return;
    peer.withdrawn.add(about.region, about.generation);
    notices_.push_back({peer.id, verbs::Immediate::kRegionClosed, about});
  }
  errands_.store(true, std::memory_order_relaxed);
}

}  // namespace rdmacoll
