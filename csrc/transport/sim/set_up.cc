// SimTransport: how ranks meet, and what they open of each other. Floor: transport/sim.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "csrc/transport/sim/network.h"
#include "csrc/transport/sim/transport.h"

namespace rdmacoll {
namespace {

constexpr const char* kAddressTag = "rdmacoll-sim-address:";
constexpr const char* kKeyTag = "rdmacoll-sim-key:";
constexpr const char* kShortKeyTag = "sim:";

// The number behind a tag, below `bound`; -1: the bytes are something else.
int64_t parse(std::string_view bytes, std::string_view tag, size_t bound) {
  if (bytes.compare(0, tag.size(), tag) != 0) return -1;
  const char* end = bytes.data() + bytes.size();
  size_t number = 0;
  const auto [stop, error] = std::from_chars(bytes.data() + tag.size(), end, number);
  return error == std::errc() && stop == end && number < bound ? static_cast<int64_t>(number) : -1;
}

// A key holds both as one decimal number. All keys of a kind have the same length.
constexpr uint64_t kKeyIds = 10'000;
constexpr size_t kKeyBytes = std::string_view(kKeyTag).size() + 18;
static_assert(kKeyIds > kMaxRegions);
std::string key_of(const SimRegion& region) {
  const std::string tag = has_short_key(region.access) ? kShortKeyTag : kKeyTag;
  const size_t bytes = has_short_key(region.access) ? kShortKeyBytes : kKeyBytes;
  const std::string digits = std::to_string(region.lease.generation * kKeyIds + region.id);
  return tag + std::string(bytes - tag.size() - digits.size(), '0') + digits;
}

}  // namespace

std::string SimTransport::address_of(int rank) { return kAddressTag + std::to_string(rank); }

Result<PeerId> SimTransport::connect(const std::string& address, Deadline) {
  const int64_t rank = parse(address, kAddressTag, network_.ranks_.size());
  if (rank < 0) {
    return Status(StatusCode::InvalidArgument, "not the address of a rank of this simulation");
  }
  if (!network_.are_of_one_host(rank_, static_cast<int>(rank))) {
    return Status(StatusCode::Unsupported, "it is another host");
  }
  RDMACOLL_RETURN_IF_ERROR(ended_[static_cast<size_t>(rank)]);
  const PeerId id = peer_of(static_cast<int>(rank));
  if (!std::exchange(peers_[id].is_met, true)) {
    network_.transport(peers_[id].rank).hear_call(rank_);
  }
  return id;
}

PeerId SimTransport::peer_of(int rank) {
  const auto known = std::find_if(peers_.begin(), peers_.end(),
                                  [&](const Peer& peer) { return peer.rank == rank; });
  if (known != peers_.end()) return static_cast<PeerId>(known - peers_.begin());
  peers_.push_back({.rank = rank});
  return static_cast<PeerId>(peers_.size() - 1);
}

void SimTransport::hear_call(int rank) {
  news_.callers.insert(rank);
  const bool is_met = std::any_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return peer.rank == rank && peer.is_met;
  });
  if (!is_met) news_.new_callers.insert(rank);
}

bool SimTransport::called_by(const std::string& address) const {
  return news_.callers.contains(
      static_cast<int>(parse(address, kAddressTag, network_.ranks_.size())));
}

void SimTransport::serve(SetUpReport& report) {
  std::move(news_.offers.begin(), news_.offers.end(), std::back_inserter(report.offers));
  for (const int rank : news_.new_callers) report.callers.push_back(address_of(rank));
  news_.offers.clear();
  news_.new_callers.clear();
}

Result<std::string> SimTransport::register_region(RegionId id, const RegionMemory& memory) {
  RDMACOLL_CHECK(id < kMaxRegions && regions_.count(id) == 0);
  regions_[id] = std::make_shared<SimRegion>(id, ++generations_, memory);
  return key_of(*regions_[id]);
}

Status SimTransport::offer_region(PeerId peer, RegionId id, uint64_t note) {
  RDMACOLL_CHECK(id != kNoRegion || note != kNoNote);
  RDMACOLL_RETURN_IF_ERROR(peer_status(peer));
  RegionOffer offer{.note = note};
  std::shared_ptr<SimRegion> region;
  if (id != kNoRegion) {
    region = regions_.at(id);
    RDMACOLL_CHECK(!region->lease.released);
    region->lease.offered(peer);
    offer.region = id;
    offer.key = key_of(*region);
  }
  if (note != kNoNote) send_offer(peers_[peer], std::move(offer), std::move(region));
  return Status();
}

// It comes late, but not before those that went before it.
void SimTransport::send_offer(Peer& peer, RegionOffer offer, std::shared_ptr<SimRegion> region) {
  SimTimeline& timeline = network_.timeline_;
  peer.last_offer_at_ns = std::max(
      peer.last_offer_at_ns, timeline.now_ns() + timeline.delay_ns(network_.options_.max_delay_ns));
  timeline.at(peer.last_offer_at_ns, [this, &other = network_.transport(peer.rank),
                                      offer = std::move(offer), region = std::move(region)] {
    const bool is_cut = cut_off_.contains(other.rank_);
    if (alive_ && !is_cut) other.hear_offer(rank_, offer, region);
  });
}

void SimTransport::hear_offer(int rank, RegionOffer offer,
                              const std::shared_ptr<SimRegion>& region) {
  if (!alive_ || cut_off_.contains(rank) || !ended_[static_cast<size_t>(rank)].ok()) return;
  offer.peer = peer_of(rank);
  if (region != nullptr && !region->withdrawn) peers_[offer.peer].offered[region->id] = region;
  news_.offers.push_back(std::move(offer));
}

Result<Region> SimTransport::open_region(PeerId id, std::string_view key, Deadline) {
  RDMACOLL_RETURN_IF_ERROR(peer_status(id));
  Peer& peer = peers_[id];
  const auto& address = network_.transport(peer.rank).regions_;
  const bool is_short = key.size() == kShortKeyBytes;
  const int64_t number = parse(key, is_short ? kShortKeyTag : kKeyTag, SIZE_MAX);
  if (number < 0 || (!is_short && key.size() != kKeyBytes)) {
    return Status(StatusCode::InvalidArgument, "not a region key of that rank");
  }
  const auto found = address.find(static_cast<RegionId>(number % kKeyIds));
  if (found == address.end() || key_of(*found->second) != key || found->second->withdrawn) {
    return withdrawn_by("simulated rank " + std::to_string(peer.rank));
  }
  peer.offered.erase(found->first);
  Open& open = peer.regions[found->first];
  if (open.region == nullptr) {
    open.region = found->second;
    if (network_.options_.mapped && peer.rank != rank_) {
      open.shadow = std::make_shared<SimShadow>(open.region);
    }
  }
  return view(open);
}

void SimTransport::close_region(PeerId id, RegionId region, std::string_view key) {
  Peer& peer = peers_[id];
  const auto is_meant = [&](const SimRegion& use) { return key.empty() || key_of(use) == key; };
  if (const auto open = peer.regions.find(region); open != peer.regions.end()) {
    if (!is_meant(*open->second.region)) return;
    return tell_closed(peer.rank, std::move(peer.regions.extract(open).mapped().region));
  }
  const auto offered = peer.offered.find(region);
  if (key.empty() || offered == peer.offered.end() || !is_meant(*offered->second)) return;
  tell_closed(peer.rank, std::move(offered->second));
  peer.offered.erase(offered);
}

// As this rank sees it.
Region SimTransport::view(const Open& open) const {
  std::byte* base = open.shadow ? open.shadow->base() : open.region->base();
  return {open.region->id, network_.options_.mapped ? base : nullptr, open.region->bytes};
}

}  // namespace rdmacoll
