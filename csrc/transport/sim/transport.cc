// SimTransport: set-up, sleep and end. Floor: transport/sim.
#include "csrc/transport/sim/transport.h"

#include <algorithm>
#include <charconv>

#include "csrc/transport/sim/network.h"

namespace rdmacoll {
namespace {

constexpr const char* kCardTag = "rdmacoll-sim-card:";
constexpr const char* kKeyTag = "rdmacoll-sim-key:";

// Of every part; whoever writes one with other bytes over it is found out.
constexpr ShortKey kShortKey{std::byte{0x51}, std::byte{0x15}};

// The number behind a tag, below `bound`; -1: the bytes are something else.
int64_t parse(const std::string& bytes, const std::string& tag, size_t bound) {
  if (bytes.compare(0, tag.size(), tag) != 0) return -1;
  const char* end = bytes.data() + bytes.size();
  size_t number = 0;
  const auto [stop, error] = std::from_chars(bytes.data() + tag.size(), end, number);
  return error == std::errc() && stop == end && number < bound ? static_cast<int64_t>(number) : -1;
}

// A key holds both as one decimal number. It has the same length in all keys.
constexpr uint64_t kKeyIds = 10'000;
static_assert(kKeyIds > kMaxRegions);
std::string key_of(RegionId region, Generation generation) {
  const std::string digits = std::to_string(generation * kKeyIds + region);
  return kKeyTag + std::string(18 - digits.size(), '0') + digits;
}
std::string key_of(const SimRegion& region) { return key_of(region.id, region.lease.generation); }

}  // namespace

SimTransport::SimTransport(SimNetwork& network, int rank)
    : network_(network), rank_(rank), ended_(static_cast<size_t>(network.options_.world)) {}

std::string SimTransport::local_card() const { return kCardTag + std::to_string(rank_); }

Result<PeerId> SimTransport::connect(const std::string& card, Deadline) {
  const int64_t rank = parse(card, kCardTag, network_.ranks_.size());
  if (rank < 0) {
    return Status(StatusCode::InvalidArgument, "not the card of a rank of this simulation");
  }
  RDMACOLL_RETURN_IF_ERROR(ended_[static_cast<size_t>(rank)]);
  for (PeerId id = 0; id < peers_.size(); ++id) {
    if (peers_[id].rank == rank) return id;
  }
  peers_.push_back({static_cast<int>(rank), {}});
  return static_cast<PeerId>(peers_.size() - 1);
}

Status SimTransport::register_region(RegionId region, std::shared_ptr<SharedSegment> memory) {
  RDMACOLL_CHECK(region < kMaxRegions && regions_.count(region) == 0);
  regions_[region] = std::make_shared<SimRegion>(region, ++generations_, std::move(memory));
  return Status();
}

Status SimTransport::register_part(RegionId id, std::shared_ptr<SharedSegment> memory,
                                   uint64_t offset, uint64_t bytes) {
  RDMACOLL_CHECK(id < kMaxRegions && regions_.count(id) == 0);
  regions_[id] = std::make_shared<SimRegion>(id, std::move(memory), offset, bytes);
  return Status();
}

bool SimTransport::short_key(RegionId part, ShortKey* key) const {
  if (network_.options_.mapped) return false;
  *key = kShortKey;
  return regions_.count(part) > 0;
}

bool SimTransport::open_by_short_key(PeerId peer, RegionId part, const ShortKey& key) {
  RDMACOLL_CHECK(key == kShortKey);
  return open_region(peer, key_of(part, 0), Deadline{INT64_MAX}).ok();
}

bool SimTransport::shares_memory() const { return network_.options_.mapped; }

std::string SimTransport::region_key(RegionId region) const { return key_of(*regions_.at(region)); }

Status SimTransport::offer_region(PeerId peer, RegionId region) {
  Lease& lease = regions_.at(region)->lease;
  RDMACOLL_CHECK(!lease.released);
  RDMACOLL_RETURN_IF_ERROR(peer_status(peer));
  lease.offered(peer);
  return Status();
}

Status SimTransport::open_region(PeerId id, const std::string& key, Deadline) {
  RDMACOLL_RETURN_IF_ERROR(peer_status(id));
  Peer& peer = peers_[id];
  const auto& theirs = network_.transport(peer.rank).regions_;
  const int64_t number = parse(key, kKeyTag, SIZE_MAX);
  if (number < 0 || key.size() != key_of(0, 0).size()) {
    return Status(StatusCode::InvalidArgument, "not a region key of that rank");
  }
  const auto found = theirs.find(static_cast<RegionId>(number % kKeyIds));
  if (found == theirs.end() || key_of(*found->second) != key || found->second->withdrawn) {
    return withdrawn_by("simulated rank " + std::to_string(peer.rank));
  }
  Open& open = peer.regions[found->first];
  if (open.region != nullptr) return Status();
  open.region = found->second;
  if (network_.options_.mapped && peer.rank != rank_) {
    open.shadow = std::make_shared<SimShadow>(open.region);
  }
  return Status();
}

uint64_t SimTransport::opened_bytes(PeerId peer, RegionId region) const {
  const auto open = peers_[peer].regions.find(region);
  return open != peers_[peer].regions.end() ? open->second.region->bytes : 0;
}

int SimTransport::arm() {
  awake_ = false;
  return -1;
}

std::byte* SimTransport::map(PeerId peer, RegionId region) {
  const auto open = peers_[peer].regions.find(region);
  if (open == peers_[peer].regions.end() || !network_.options_.mapped) return nullptr;
  return open->second.shadow ? open->second.shadow->base() : open->second.region->base();
}

Status SimTransport::peer_status(PeerId peer) const {
  RDMACOLL_CHECK(peer < peers_.size());
  return ended_[static_cast<size_t>(peers_[peer].rank)];
}

Status SimTransport::fence(PeerId peer, Deadline) {
  SimTransport& other = network_.transport(peers_[peer].rank);
  if (other.alive_ && network_.options_.mapped) {
    return Status(StatusCode::Unsupported, "a live peer's mapping cannot be taken away");
  }
  other.drop_all_to(rank_);
  drop_all_to(other.rank_);
  if (!cut_off_.insert(other.rank_).second) return Status();
  const auto failed = [](int rank, const char* how) {
    return Status(StatusCode::PeerFailed, "simulated rank " + std::to_string(rank) + how);
  };
  if (ended_[static_cast<size_t>(other.rank_)].ok()) {
    see_end(other.rank_, failed(other.rank_, " was cut off from this one"));
  }
  SimTimeline& timeline = network_.timeline_;
  timeline.at(timeline.now_ns() + timeline.delay_ns(network_.options_.max_notice_ns),
              [this, &other, failed] {
                if (other.ended_[static_cast<size_t>(rank_)].ok()) {
                  other.see_end(rank_, failed(rank_, " has cut this one off"));
                }
              });
  return Status();
}

void SimTransport::shutdown() {
  if (!alive_) return;
  alive_ = false;
  network_.announce_end(rank_, "left");
}

void SimTransport::see_end(int rank, Status why) {
  ended_[static_cast<size_t>(rank)] = std::move(why);
  awake_ = true;
}

// Of each flow the last signals are lost, from a random one on; a put that no other signal follows
// comes or does not.
void SimTransport::die() {
  alive_ = false;
  SimTimeline& timeline = network_.timeline_;
  std::set<const Flight*> followed;
  for (auto& [to, flow] : flows_) {
    const uint64_t cut = timeline.below(flow.notices.size() + 1);
    for (size_t i = 0; i < flow.notices.size(); ++i) {
      Notice& notice = *flow.notices[i];
      if (i >= cut) notice.dropped = true;
      if (notice.dropped || notice.delivered) continue;
      for (const auto& flight : notice.before) followed.insert(flight.get());
    }
  }
  for (auto& [to, flow] : flows_) {
    for (const auto& flight : flow.flights) {
      if (followed.count(flight.get()) == 0 && timeline.chance(0.5)) drop(flight.get());
    }
  }
}

void SimTransport::drop_all_to(int rank) {
  for (auto& [to, flow] : flows_) {
    if (to.first != rank) continue;
    for (const auto& notice : flow.notices) notice->dropped = true;
    for (const auto& flight : flow.flights) drop(flight.get());
  }
}

}  // namespace rdmacoll
