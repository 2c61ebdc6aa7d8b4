// Whole worlds of plans for the prover's tests: every algorithm, with sizes that hurt.
// Floor: tests of plan.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "csrc/plan/selection/select.h"
#include "csrc/plan/verify/verify.h"

namespace rdmacoll {

struct Subject {
  Collective collective;
  Algorithm algorithm;
  bool mapped;

  Islands islands(uint32_t world) const {
    return mapped ? Islands::together(world) : Islands::apart(world);
  }
  std::string name() const {
    return std::string(collective_name(collective)) + "_" + algorithm_name(algorithm) +
           (mapped ? "_mapped" : "_unmapped");
  }
};

inline bool same_plan_mapped_or_not(Collective collective, Algorithm algorithm) {
  if (!exists(collective, algorithm, Islands::apart(2))) return false;
  const Plan mapped = make_plan(collective, algorithm, 1, Islands::together(5), 0);
  const Plan unmapped = make_plan(collective, algorithm, 1, Islands::apart(5), 0);
  return mapped.steps == unmapped.steps && mapped.operands == unmapped.operands;
}

// Every collective x algorithm of one level, on mapped peers and, where the plan is another, on
// others.
inline std::vector<Subject> all_subjects() {
  std::vector<Subject> subjects;
  for (int c = 0; c <= static_cast<int>(Collective::Barrier); ++c) {
    for (int a = 0; a <= static_cast<int>(Algorithm::Dissemination); ++a) {
      const auto collective = static_cast<Collective>(c);
      const auto algorithm = static_cast<Algorithm>(a);
      for (bool mapped : {false, true}) {
        const Subject subject{collective, algorithm, mapped};
        if (!exists(collective, algorithm, subject.islands(2))) continue;
        if (mapped && same_plan_mapped_or_not(collective, algorithm)) continue;
        subjects.push_back(subject);
      }
    }
  }
  return subjects;
}

inline bool has_root(Collective collective) {
  return collective == Collective::Broadcast || collective == Collective::Reduce ||
         collective == Collective::Gather || collective == Collective::Scatter;
}

inline WorldPlan plans_on(const Islands& islands, Collective collective, Algorithm algorithm,
                          uint16_t root = 0) {
  WorldPlan operation;
  operation.islands = islands;
  operation.root = root;
  for (uint16_t rank = 0; rank < islands.world(); ++rank) {
    operation.plans.push_back(make_plan(collective, algorithm, rank, islands, root));
  }
  return operation;
}

inline WorldPlan plans_of(const Subject& subject, uint16_t world, uint16_t root = 0) {
  return plans_on(subject.islands(world), subject.collective, subject.algorithm, root);
}

inline bool any_placed(const WorldPlan& operation) {
  return std::any_of(operation.plans.begin(), operation.plans.end(), [](const Plan& plan) {
    return std::any_of(plan.steps.begin(), plan.steps.end(),
                       [](const Step& step) { return step.placed; });
  });
}

// It passes blocks on, of all_to_all under numbers of its own. Then all must be of one size. Of
// gather and scatter it is enough that all ranks know all sizes.
inline bool passes_on(const Plan& plan) {
  return needs_equal_blocks(plan.collective, plan.algorithm);
}
inline bool has_equal_blocks(const Plan& plan) {
  return passes_on(plan) && plan.collective == Collective::AllToAll;
}

// The sizes of the scattered collectives: sizes[b] for rank b's block. Ranks know only the blocks
// they have; all_to_all sends (from + 2 * to) further along the list. Where all blocks must be of
// one size, it is the largest of these.
inline void set_block_sizes(WorldPlan& operation, const std::vector<uint64_t>& sizes) {
  const Plan& first = operation.plans.front();
  const uint16_t world = first.world;
  const auto size = [&](size_t index) { return sizes[index % sizes.size()]; };
  if (has_equal_blocks(first)) {
    const uint64_t largest = *std::max_element(sizes.begin(), sizes.end());
    operation.block_bytes.assign(world, std::vector<uint64_t>(first.blocks, largest));
    return;
  }
  operation.block_bytes.assign(world, std::vector<uint64_t>(first.blocks, 0));
  for (uint16_t rank = 0; rank < world; ++rank) {
    for (uint16_t b = 0; b < world; ++b) {
      std::vector<uint64_t>& mine = operation.block_bytes[rank];
      if (first.collective == Collective::AllToAll) {
        mine[b] = size(rank + 2 * b);
        mine[world + b] = size(b + 2 * rank);
      } else {
        const bool known = first.collective == Collective::AllGather ||
                           first.collective == Collective::ReduceScatter || passes_on(first) ||
                           rank == operation.root || rank == rank_of(first, b);
        mine[b] = known ? size(b) : 0;
      }
    }
  }
}

// Slots and stages that hold `chunk` bytes of a block.
inline Bounds bounds_for(const WorldPlan& operation, uint64_t chunk, uint32_t depth) {
  Bounds bounds{
      .slot_bytes = chunk, .stage_bytes = chunk, .slot_depth = depth, .stage_depth = depth};
  for (const Plan& plan : operation.plans) {
    bounds.slot_bytes = std::max<uint64_t>(bounds.slot_bytes, chunk * plan.slot_blocks);
    bounds.stage_bytes = std::max<uint64_t>(bounds.stage_bytes, chunk * plan.stage_blocks);
  }
  return bounds;
}

inline std::vector<WorldPlan> twice(const WorldPlan& operation) { return {operation, operation}; }

}  // namespace rdmacoll
