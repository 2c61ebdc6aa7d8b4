// The contract on the simulator: all ranks take turns in one thread.
#include <memory>
#include <vector>

#include "csrc/transport/sim/network.h"
#include "tests/contract/contract.h"

namespace rdmacoll::contract_sim {
namespace {

// Turns in which nothing is in flight in a simulation until its ranks are taken for stuck.
constexpr int kIdleTurns = 1000;

void run_sim(const Kind& kind, int world, uint64_t seed, const Body& body) {
  SimOptions options;
  options.world = world;
  options.mapped = kind.maps;
  SimNetwork network(seed, options);
  Board board;
  std::vector<std::unique_ptr<Member>> members;
  std::vector<Script> scripts;
  for (int rank = 0; rank < world; ++rank) {
    members.emplace_back(new Member{.kind = kind,
                                    .rank = rank,
                                    .world = world,
                                    .seed = seed,
                                    .transport = network.transport(rank),
                                    .clock = network.clock(),
                                    .board = board,
                                    .leave = [&, rank] { network.transport(rank).leave(); }});
    scripts.push_back(body(*members.back()));
    members.back()->resume_at = scripts.back().handle();
  }
  for (int idle = 0;;) {
    bool all_ended = true;
    for (size_t rank = 0; rank < scripts.size(); ++rank) {
      if (scripts[rank].ended()) continue;
      all_ended = false;
      members[rank]->given_up = idle > kIdleTurns;
      members[rank]->resume_at.resume();
    }
    if (all_ended) break;
    idle = network.step() ? 0 : idle + 1;
  }
  for (size_t rank = 0; rank < scripts.size(); ++rank) {
    report(scripts[rank], kind, seed, static_cast<int>(rank));
  }
}

constexpr Kind kSim{.name = "Sim",
                    .run = run_sim,
                    .any_order = true,
                    .is_simulated = true,
                    .seeds = 1'000,
                    .messages = 96,
                    .trespasser = Trespasser::Dies};
constexpr Kind kSimMapped{.name = "SimMapped",
                          .run = run_sim,
                          .maps = true,
                          .any_order = true,
                          .is_simulated = true,
                          .seeds = 1'000,
                          .messages = 96,
                          .trespasser = Trespasser::Dies};

INSTANTIATE_TEST_SUITE_P(Sim, Contract,
                         ::testing::Combine(::testing::Values(&kSim, &kSimMapped),
                                            ::testing::Values(1, 2, 3, 4)),
                         contract_case);

}  // namespace
}  // namespace rdmacoll::contract_sim
