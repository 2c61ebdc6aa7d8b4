// SimTransport: set-up, sleep and end. Floor: transport/sim.
#include "csrc/transport/sim/transport.h"

#include <algorithm>
#include <charconv>

#include "csrc/transport/sim/network.h"

namespace rdmacoll {
namespace {

constexpr const char* kAddressTag = "rdmacoll-sim-address:";
constexpr const char* kKeyTag = "rdmacoll-sim-key:";
constexpr const char* kShortKeyTag = "sim:";

// Of a transport that reaches no other host: a process may have another beside it.
constexpr const char* kNameInsideHosts = "sim_host";

// The number behind a tag, below `bound`; -1: the bytes are something else.
int64_t parse(std::string_view bytes, std::string_view tag, size_t bound) {
  if (bytes.compare(0, tag.size(), tag) != 0) return -1;
  const char* end = bytes.data() + bytes.size();
  size_t number = 0;
  const auto [stop, error] = std::from_chars(bytes.data() + tag.size(), end, number);
  return error == std::errc() && stop == end && number < bound ? static_cast<int64_t>(number) : -1;
}

std::string island_of(const SimOptions& options, int rank) {
  if (!options.mapped) return "";
  if (options.hosts.empty()) return "simulation";
  return "host " + std::to_string(options.hosts[static_cast<size_t>(rank)]);
}

// A key holds both as one decimal number. All keys of a kind have the same length.
constexpr uint64_t kKeyIds = 10'000;
constexpr size_t kKeyBytes = std::string_view(kKeyTag).size() + 18;
static_assert(kKeyIds > kMaxRegions);
std::string key_of(const SimRegion& region) {
  const std::string tag = region.access == Access::Full ? kKeyTag : kShortKeyTag;
  const size_t bytes = region.access == Access::Full ? kKeyBytes : kShortKeyBytes;
  const std::string digits = std::to_string(region.lease.generation * kKeyIds + region.id);
  return tag + std::string(bytes - tag.size() - digits.size(), '0') + digits;
}

}  // namespace

SimTransport::SimTransport(SimNetwork& network, int rank)
    : network_(network), rank_(rank), ended_(static_cast<size_t>(network.options_.world)) {
  set_info({.name = network.options_.hosts.empty() ? "sim" : kNameInsideHosts,
            .address = kAddressTag + std::to_string(rank),
            .shares_memory = network.options_.mapped,
            .island = island_of(network.options_, rank)});
}

Result<PeerId> SimTransport::connect(const std::string& address, Deadline) {
  const int64_t rank = parse(address, kAddressTag, network_.ranks_.size());
  if (rank < 0) {
    return Status(StatusCode::InvalidArgument, "not the address of a rank of this simulation");
  }
  if (!network_.are_of_one_host(rank_, static_cast<int>(rank))) {
    return Status(StatusCode::Unsupported, "it is another host");
  }
  RDMACOLL_RETURN_IF_ERROR(ended_[static_cast<size_t>(rank)]);
  for (PeerId id = 0; id < peers_.size(); ++id) {
    if (peers_[id].rank == rank) return id;
  }
  peers_.push_back({static_cast<int>(rank), {}});
  return static_cast<PeerId>(peers_.size() - 1);
}

Result<std::string> SimTransport::register_region(RegionId id, const RegionMemory& memory) {
  RDMACOLL_CHECK(id < kMaxRegions && regions_.count(id) == 0);
  regions_[id] = std::make_shared<SimRegion>(id, ++generations_, memory);
  return key_of(*regions_[id]);
}

Status SimTransport::offer_region(PeerId peer, RegionId region) {
  Lease& lease = regions_.at(region)->lease;
  RDMACOLL_CHECK(!lease.released);
  RDMACOLL_RETURN_IF_ERROR(peer_status(peer));
  lease.offered(peer);
  return Status();
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
  Open& open = peer.regions[found->first];
  if (open.region == nullptr) {
    open.region = found->second;
    if (network_.options_.mapped && peer.rank != rank_) {
      open.shadow = std::make_shared<SimShadow>(open.region);
    }
  }
  return view(open);
}

// As this rank sees it.
Region SimTransport::view(const Open& open) const {
  std::byte* base = open.shadow ? open.shadow->base() : open.region->base();
  return {open.region->id, network_.options_.mapped ? base : nullptr, open.region->bytes};
}

int SimTransport::arm() {
  awake_ = false;
  return -1;
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

void SimTransport::leave() {
  if (!alive_) return;
  alive_ = false;
  network_.announce_end(rank_, "left");
}

void SimTransport::see_end(int rank, Status why) {
  for (PeerId id = 0; id < peers_.size(); ++id) {
    if (peers_[id].rank == rank) note_end(id, why);
  }
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
