// SimNetwork: all ranks of a job in one process and one thread, on a virtual clock, from one seed.
// It keeps the transport's promise and nothing more, so that code that relies on the stronger order
// of real shared memory breaks here, repeatably:
//   - a put does nothing but spoil its destination; its source is read later, piece by piece, cut
//     at any byte, in any order, interleaved with all others (sometimes it is taken at once, as a
//     NIC takes small data);
//   - a signal comes late; just before it come those puts of its (peer, channel) that it follows,
//     and no others; the header first, the counter last. Two signals to one line stay in order;
//   - channels and peers overtake each other freely; posting is refused (Full) by chance;
//   - mapped: loads see the owner's stores piece by piece, all of them only when a signal of the
//     owner comes, and none that were made after a signal that has not come; stores reach the owner
//     before the next signal to it;
//   - a killed rank's last puts and signals may be lost, the later ones of a channel first.
// A harness drives the ranks in turn and calls step() in between.
// Ranks of several hosts have two networks beside each other, as processes have two transports: one
// that is mapped and reaches no other host, and one that reaches all.
// Floor: transport/sim. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "csrc/transport/sim/timeline.h"
#include "csrc/transport/sim/transport.h"

namespace rdmacoll {

struct SimOptions {
  int world = 2;
  bool mapped = false;
  std::vector<int> hosts{};  // by rank: it meets those of its own alone; empty: all meet
  int64_t max_delay_ns = 20'000;
  double full_probability = 0.05;     // of a put, get or signal to be refused
  double at_once_probability = 0.25;  // of a put's source to be taken in the call
  double again_probability = 0.05;    // of a signal to be stored a second time
  int64_t max_notice_ns = 1'000'000;  // until peers see the end of a rank
};

struct SimCounts {
  uint64_t puts = 0;  // and gets, and mapped stores
  uint64_t pieces = 0;
  uint64_t signals = 0;
  uint64_t signals_again = 0;
  uint64_t refused = 0;
  uint64_t steps = 0;
  uint64_t to_parts = 0;     // of the puts, those to a part of memory: what lands
  uint64_t late_pieces = 0;  // landed in a region that its owner had released
};

class SimNetwork {
 public:
  SimNetwork(uint64_t seed, const SimOptions& options);
  // Of the same ranks, with the other's clock, chance and steps; the other outlives this.
  SimNetwork(SimNetwork& beside, const SimOptions& options);

  int world() const { return static_cast<int>(ranks_.size()); }
  SimTransport& transport(int rank) { return *ranks_[static_cast<size_t>(rank)]; }
  const Clock& clock() const { return timeline_; }
  const SimCounts& counts() const { return counts_; }

  // Lets the next thing happen; false: nothing is in flight, time stands still.
  bool step();
  // Lets time pass, with what happens in it.
  void advance(int64_t ns) { timeline_.advance(ns); }
  // The rank stops for ever. It must not be driven after.
  void kill(int rank);
  // Nothing goes between the two any more, and both come to know it.
  void cut(int one, int other);

 private:
  friend class SimTransport;
  SimNetwork(std::unique_ptr<SimTimeline> own, SimTimeline* shared, const SimOptions& options);
  bool are_of_one_host(int a, int b) const {
    return options_.hosts.empty() ||
           options_.hosts[static_cast<size_t>(a)] == options_.hosts[static_cast<size_t>(b)];
  }
  void refresh_something();
  // All other ranks will see the end of this one.
  void announce_end(int rank, const char* how);

  const SimOptions options_;
  const std::unique_ptr<SimTimeline> own_timeline_;  // nullptr: it is another's
  SimTimeline& timeline_;
  SimCounts counts_;
  std::vector<std::unique_ptr<SimTransport>> ranks_;
};

}  // namespace rdmacoll
