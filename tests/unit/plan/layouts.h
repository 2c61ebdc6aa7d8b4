// Layouts of ranks on hosts, for the proofs of plans of two levels.
// Floor: tests of plan.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "csrc/plan/islands.h"
#include "csrc/plan/layered/rails.h"
#include "csrc/plan/layered/rounds.h"
#include "csrc/plan/selection/select.h"
#include "csrc/plan/verify/verify.h"

namespace rdmacoll {

// A plan, mostly of two levels.
struct Layered {
  Collective collective;
  Algorithm algorithm;

  std::string name() const {
    return std::string(collective_name(collective)) + "_" + algorithm_name(algorithm);
  }
};

inline std::vector<Layered> all_layered() {
  const Islands islands = Islands::of_shape("2x2").take();
  std::vector<Layered> all;
  for (size_t c = 0; c < kCollectives; ++c) {
    for (Algorithm algorithm : {Algorithm::Rails, Algorithm::Leaders, Algorithm::HalvingDoubling}) {
      const auto collective = static_cast<Collective>(c);
      if (exists(collective, algorithm, islands)) all.push_back({collective, algorithm});
    }
  }
  return all;
}

// Plans of one level that are made in host order.
inline std::vector<Layered> all_by_neighbours() {
  return {{Collective::AllReduce, Algorithm::Ring},
          {Collective::AllReduce, Algorithm::Tree},
          {Collective::AllReduce, Algorithm::HalvingDoubling},
          {Collective::Broadcast, Algorithm::Tree},
          {Collective::Reduce, Algorithm::Tree},
          {Collective::AllGather, Algorithm::Ring},
          {Collective::ReduceScatter, Algorithm::Ring},
          {Collective::Barrier, Algorithm::Dissemination}};
}

// Rails whose stages hold so few blocks that few ranks fill several of them.
inline WorldPlan rails_in_groups(const Islands& islands, Collective collective,
                                 uint32_t stage_blocks) {
  WorldPlan operation;
  operation.islands = islands;
  for (uint16_t rank = 0; rank < islands.world(); ++rank) {
    operation.plans.push_back(collective == Collective::AllReduce
                                  ? rails_all_reduce_in_groups(rank, islands, stage_blocks)
                                  : rails_reduce_scatter_in_groups(rank, islands, stage_blocks));
  }
  return operation;
}
// Halving and doubling from host to host with messages of so many blocks, as of many hosts.
inline WorldPlan rounds_with(const Islands& islands, uint32_t message_blocks) {
  WorldPlan operation;
  operation.islands = islands;
  for (uint16_t rank = 0; rank < islands.world(); ++rank) {
    operation.plans.push_back(rounds_all_reduce_with(rank, islands, message_blocks));
  }
  return operation;
}

inline constexpr Collective kInGroups[] = {Collective::AllReduce, Collective::ReduceScatter};

// All partitions of so many ranks into several islands of which one has several.
inline void for_each_layout(uint32_t world, const std::function<void(const Islands&)>& call) {
  std::vector<std::string> keys(world, "0");
  const std::function<void(uint32_t, char)> extend = [&](uint32_t rank, char used) {
    if (rank == world) {
      const Islands islands = Islands::by_key(keys);
      if (islands.has_levels()) call(islands);
      return;
    }
    for (char key = '0'; key <= used; ++key) {
      keys[rank] = key;
      extend(rank + 1, static_cast<char>(key == used ? used + 1 : used));
    }
  };
  extend(1, '1');
}

// Of so many hosts with so many ranks each, dealt out in turns.
inline Islands round_robin(uint32_t hosts, uint32_t ranks) {
  std::vector<std::string> keys;
  for (uint32_t rank = 0; rank < hosts * ranks; ++rank) {
    keys.push_back(std::to_string(rank % hosts));
  }
  return Islands::by_key(keys);
}

}  // namespace rdmacoll
