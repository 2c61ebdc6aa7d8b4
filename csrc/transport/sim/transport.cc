// SimTransport: opening, sleep and end. Floor: transport/sim.
#include "csrc/transport/sim/transport.h"

#include <algorithm>

#include "csrc/transport/sim/network.h"

namespace rdmacoll {
namespace {

// Of a transport that reaches no other host: a process may have another beside it.
constexpr const char* kNameInsideHosts = "sim_host";

std::string island_of(const SimOptions& options, int rank) {
  if (!options.mapped) return "";
  if (options.hosts.empty()) return "simulation";
  return "host " + std::to_string(options.hosts[static_cast<size_t>(rank)]);
}

}  // namespace

SimTransport::SimTransport(SimNetwork& network, int rank)
    : network_(network), rank_(rank), ended_(static_cast<size_t>(network.options_.world)) {
  set_info({.name = network.options_.hosts.empty() ? "sim" : kNameInsideHosts,
            .address = address_of(rank),
            .shares_memory = network.options_.mapped,
            .has_updates = true,
            .island = island_of(network.options_, rank)});
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
