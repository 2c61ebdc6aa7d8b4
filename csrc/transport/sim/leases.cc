// SimTransport: how regions end, and when their ids can be used anew. Notices about them come late,
// like everything else. Floor: transport/sim.
#include <algorithm>
#include <utility>

#include "csrc/transport/sim/network.h"

namespace rdmacoll {

void SimTransport::release_region(RegionId id, Release how) {
  if (how == Release::Withdraw) withdraw(id);
  regions_.at(id)->lease.released = true;
}

void SimTransport::cut_off_region(RegionId id) { regions_.at(id)->is_cut_off = true; }

void SimTransport::withdraw(RegionId id) {
  const std::shared_ptr<SimRegion>& region = regions_.at(id);
  region->withdrawn = true;
  SimTimeline& timeline = network_.timeline_;
  for (const PeerId reader : region->lease.readers) {
    timeline.at(timeline.now_ns() + timeline.delay_ns(network_.options_.max_delay_ns),
                [this, region, &other = network_.transport(peers_[reader].rank)] {
                  if (alive_ && other.alive_) other.hear_withdrawn(rank_, region);
                });
  }
}

void SimTransport::hear_withdrawn(int owner, const std::shared_ptr<SimRegion>& region) {
  for (Peer& peer : peers_) {
    const auto offered = peer.offered.find(region->id);
    if (offered != peer.offered.end() && offered->second == region) peer.offered.erase(offered);
  }
  const bool is_open = std::any_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    const auto open = peer.regions.find(region->id);
    return peer.rank == owner && open != peer.regions.end() && open->second.region == region;
  });
  if (!is_open) tell_closed(owner, region);  // nor will it be: open_region() refuses
}

// The notice comes after all that this rank did to the region.
void SimTransport::tell_closed(int owner, std::shared_ptr<SimRegion> region) {
  SimTimeline& timeline = network_.timeline_;
  timeline.at(timeline.now_ns() + timeline.delay_ns(network_.options_.max_delay_ns),
              [this, owner, region = std::move(region)] {
                if (!alive_) return;
                if (under_way(*region)) return tell_closed(owner, region);
                SimTransport& other = network_.transport(owner);
                for (PeerId peer = 0; peer < other.peers_.size(); ++peer) {
                  if (other.peers_[peer].rank != rank_) continue;
                  region->lease.closed(peer, region->lease.generation);
                }
              });
}

// Whether something that this rank has issued still reads from the region or writes to it.
bool SimTransport::under_way(const SimRegion& region) const {
  const auto is_flying = [&](const auto& flight) {
    return !flight->pieces.empty() &&
           (flight->memory.get() == &region || flight->local.get() == &region);
  };
  const auto is_signalled = [&](const auto& notice) {
    return !notice->dropped && !notice->delivered && notice->memory.get() == &region;
  };
  return std::any_of(flows_.begin(), flows_.end(), [&](const auto& entry) {
    const Flow& flow = entry.second;
    return std::any_of(flow.flights.begin(), flow.flights.end(), is_flying) ||
           std::any_of(flow.notices.begin(), flow.notices.end(), is_signalled);
  });
}

// A rank that is gone counts as a reader as long as something that it sent may still come.
bool SimTransport::is_reusable(RegionId id) {
  const auto found = regions_.find(id);
  if (found == regions_.end()) return true;
  const SimRegion& region = *found->second;
  Lease& lease = found->second->lease;
  std::erase_if(lease.readers, [&](PeerId reader) {
    return !peer_status(reader).ok() && !network_.transport(peers_[reader].rank).under_way(region);
  });
  if (!lease.released || !lease.readers.empty() || under_way(region)) return false;
  regions_.erase(found);
  return true;
}

}  // namespace rdmacoll
