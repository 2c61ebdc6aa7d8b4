// SimWorld: the real engine, a communicator per rank, on a simulated network in one thread. Only
// the engine's progress is replaced: this harness drives the ranks, in an order drawn from the
// seed. With hosts (SimOptions) each rank has two transports, one mapped and one between hosts.
// Floor: tests. Thread: one.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "csrc/engine/communicator.h"
#include "csrc/engine/connect/group_setup.h"
#include "csrc/engine/connect/linker.h"
#include "csrc/engine/session/sessions.h"
#include "csrc/engine/shrinking.h"
#include "csrc/transport/sim/network.h"

namespace rdmacoll {

// Heaps so small that some buffers find no room, and messages so small that most are zero-copy or
// placed.
Config small_heaps();

inline constexpr int64_t kHourMs = 3'600'000;

class SimWorld {
 public:
  SimWorld(uint64_t seed, const SimOptions& options, const Config& config);

  Communicator& rank(int r) { return *ranks_[static_cast<size_t>(r)]; }
  // Those of a smaller group, and what makes them on a rank (shrinking.h).
  std::unique_ptr<Shrinking> shrinking_of(int r, Communicator& group, Shrinking::Make make);
  std::shared_ptr<Communicator> adopt(int r, NewGroup made);
  // The rank leaves the first group.
  void leave(int r) { ranks_[static_cast<size_t>(r)].reset(); }
  int size() const { return static_cast<int>(ranks_.size()); }
  void set_timeouts_ms(int64_t timeout_ms);  // of all ranks
  std::mt19937_64& random() { return random_; }
  SimNetwork& network() { return network_; }
  // Where hosts meet; the only one, where there are none.
  SimNetwork& between_hosts() { return between_hosts_ ? *between_hosts_ : network_; }
  std::vector<Heap*> heaps() const;  // by rank
  uint64_t draw(uint64_t below) { return random_() % below; }

  // Drives and links one rank, drawn by chance, and lets the network take a step.
  void step();
  // Until all works are done; false: it got stuck, which no schedule may bring about.
  bool run(const std::vector<WorkPtr>& works);
  void kill(int r);
  // A rank that is stopped does nothing, as behind SIGSTOP or in a long computation, but is there.
  void stop(int r) { drivers_[static_cast<size_t>(r)]->stop(true); }
  void resume(int r) { drivers_[static_cast<size_t>(r)]->stop(false); }
  // Nobody is linked to anybody meanwhile.
  void hold_links(bool hold) { holds_links_ = hold; }
  // Steps until it holds, past every deadline; false: it does not come about.
  bool run_until(const std::function<bool()>& holds);
  uint64_t rounds() const { return rounds_; }

 private:
  // In place of threads and sleep.
  class Driver final : public Progress {
   public:
    void add(Driven& one) override { driven_.push_back(&one); }
    void remove(Driven& one) override;
    void notify(const News&) override {}
    Status wait(std::span<Work* const>, int64_t, const InterruptCheck&) override;
    void round(bool check);
    void die() { dead_ = true; }
    void stop(bool stopped) { stopped_ = stopped; }
    bool runs() const { return !dead_ && !stopped_; }

   private:
    void settle(std::vector<Completion>& finished);
    std::vector<Driven*> driven_;
    bool dead_ = false;
    bool stopped_ = false;
  };

  EngineContext context(int r);
  std::unique_ptr<Transports> transports_of(int r, const std::vector<int>& hosts);

  std::mt19937_64 random_;
  SimNetwork network_;
  const std::unique_ptr<SimNetwork> between_hosts_;  // nullptr: there are no hosts
  const Config config_;
  const Tuning tuning_;
  std::vector<std::unique_ptr<Transports>> transports_;
  std::vector<std::unique_ptr<Linker>> linkers_;
  std::vector<std::unique_ptr<Driver>> drivers_;
  std::vector<std::unique_ptr<Sessions>> sessions_;
  std::vector<std::shared_ptr<Communicator>> ranks_;
  std::map<Communicator*, Group*> groups_;  // of each communicator that was adopted
  uint64_t rounds_ = 0;
  bool holds_links_ = false;
};

// A few ranks that have an hour for each operation, but must run every so often.
std::unique_ptr<SimWorld> patient_world(uint64_t seed, std::mt19937_64& random,
                                        int64_t stall_timeout_ms);

}  // namespace rdmacoll
