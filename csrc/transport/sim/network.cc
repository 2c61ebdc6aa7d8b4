// SimNetwork: time, chance and death. Floor: transport/sim.
#include "csrc/transport/sim/network.h"

#include <iterator>
#include <string>
#include <utility>

namespace rdmacoll {

SimNetwork::SimNetwork(uint64_t seed, const SimOptions& options)
    : SimNetwork(std::make_unique<SimTimeline>(seed), nullptr, options) {}

SimNetwork::SimNetwork(SimNetwork& beside, const SimOptions& options)
    : SimNetwork(nullptr, &beside.timeline_, options) {}

SimNetwork::SimNetwork(std::unique_ptr<SimTimeline> own, SimTimeline* shared,
                       const SimOptions& options)
    : options_(options),
      own_timeline_(std::move(own)),
      timeline_(own_timeline_ != nullptr ? *own_timeline_ : *shared) {
  RDMACOLL_CHECK(options.hosts.empty() || std::ssize(options.hosts) == options.world);
  RDMACOLL_CHECK(options.world > 0 && options.max_delay_ns > 0 && options.max_notice_ns > 0);
  RDMACOLL_CHECK(options.full_probability < 1);
  for (int rank = 0; rank < options.world; ++rank) {
    ranks_.push_back(std::make_unique<SimTransport>(*this, rank));
  }
}

bool SimNetwork::step() {
  ++counts_.steps;
  if (options_.mapped && timeline_.chance(0.25)) refresh_something();
  return timeline_.step();
}

// Some rank happens to see some part of what a peer stored.
void SimNetwork::refresh_something() {
  SimTransport& viewer = *ranks_[timeline_.below(ranks_.size())];
  if (viewer.peers_.empty()) return;
  SimTransport::Peer& peer = viewer.peers_[timeline_.below(viewer.peers_.size())];
  // Stores behind a signal are not seen before it.
  if (!transport(peer.rank).pending_to(viewer.rank_).empty()) return;
  for (auto& [id, open] : peer.regions) {
    if (open.shadow == nullptr) continue;
    const uint64_t offset = timeline_.below(open.region->bytes);
    open.shadow->refresh(offset, 1 + timeline_.below(open.region->bytes - offset));
  }
}

void SimNetwork::kill(int rank) {
  transport(rank).die();
  announce_end(rank, "was killed");
}

void SimNetwork::cut(int one, int other) {
  for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)}) {
    transport(from).drop_all_to(to);
    transport(to).cut_off_.insert(from);
    const Status why(StatusCode::PeerFailed,
                     "the link to simulated rank " + std::to_string(from) + " is lost");
    timeline_.at(timeline_.now_ns() + timeline_.delay_ns(options_.max_notice_ns),
                 [&viewer = transport(to), from = from, why] { viewer.see_end(from, why); });
  }
}

void SimNetwork::announce_end(int rank, const char* how) {
  for (const auto& other : ranks_) {
    if (other->rank_ == rank) continue;
    const Status why(StatusCode::PeerFailed, "simulated rank " + std::to_string(rank) + " " + how);
    timeline_.at(timeline_.now_ns() + timeline_.delay_ns(options_.max_notice_ns),
                 [&other = *other, rank, why] { other.see_end(rank, why); });
  }
}

}  // namespace rdmacoll
