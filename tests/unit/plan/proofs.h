// Proofs of one operation, twice in a row, in all the ways in which its messages may travel.
// Floor: tests of plan.
#pragma once

#include <gtest/gtest.h>

#include "tests/unit/plan/worlds.h"

namespace rdmacoll {

// Nobody sends zero-copy or grants, or everybody, each with each. That proves what is in between
// (verify.h); every other rank is tried all the same, where it costs little.
struct Way {
  uint64_t zero_copy_senders, granters;
};
inline constexpr uint64_t kAll = ~uint64_t{0};
inline constexpr uint64_t kEveryOther = 0x5555555555555555;
inline constexpr Way kWays[] = {
    {0, 0}, {kAll, 0}, {0, kAll}, {kAll, kAll}, {kEveryOther, kEveryOther}};

inline void prove(const std::string& name, WorldPlan operation, const Bounds& bounds) {
  for (const Way& way : kWays) {
    const bool every_other = way.zero_copy_senders == kEveryOther;
    if (every_other && (operation.plans.size() > 5 || bounds.slot_depth > 2)) continue;
    if (way.granters == kAll && !any_placed(operation)) continue;
    operation.zero_copy_senders = way.zero_copy_senders;
    operation.granters = way.granters;
    const std::string why = verify(twice(operation), bounds);
    EXPECT_EQ(why, "") << name << " on " << operation.islands.shape() << ", world "
                       << operation.plans.size() << ", " << operation.bytes << " bytes, root "
                       << operation.root << (operation.in_place ? ", in place" : "")
                       << ", zero_copy_senders " << way.zero_copy_senders << ", granters "
                       << way.granters;
  }
}

// Sizes around the awkward places; the last has five whole windows and a ragged one.
inline std::vector<uint64_t> buffer_sizes(const Plan& plan, uint64_t chunk) {
  const uint64_t world = plan.world;
  const uint64_t window = chunk * plan.blocks;
  return {0, 1, world - 1, world, world + 1, 7, 13, window, window + 1, 5 * window + 1};
}

inline std::vector<std::vector<uint64_t>> block_size_lists(uint64_t chunk) {
  return {{0}, {1}, {chunk}, {0, 0, 1}, {1, 0, 7, 2}, {3, 13, 0, 5, 1}, {5 * chunk + 1}};
}

inline void prove_sizes(const std::string& name, WorldPlan& operation, uint64_t chunk,
                        uint32_t depth) {
  const Bounds bounds = bounds_for(operation, chunk, depth);
  if (is_contiguous(operation.plans[0].collective)) {
    for (uint64_t bytes : buffer_sizes(operation.plans[0], chunk)) {
      operation.bytes = bytes;
      prove(name, operation, bounds);
    }
    return;
  }
  for (const std::vector<uint64_t>& sizes : block_size_lists(chunk)) {
    set_block_sizes(operation, sizes);
    prove(name, operation, bounds);
  }
}

// Of operations that share the channels nothing is drained between one and the next.
inline void prove_any_behind_any(std::vector<WorldPlan> operations) {
  Bounds bounds;
  for (WorldPlan& operation : operations) {
    operation.bytes = 3u * operation.plans[0].blocks + 1;
    if (!is_contiguous(operation.plans[0].collective)) set_block_sizes(operation, {3, 0, 1});
    const Bounds least = bounds_for(operation, 1, 2);
    bounds.slot_bytes = std::max(bounds.slot_bytes, least.slot_bytes);
    bounds.stage_bytes = std::max(bounds.stage_bytes, least.stage_bytes);
  }
  for (const WorldPlan& first : operations) {
    for (const WorldPlan& second : operations) {
      EXPECT_EQ(verify({first, second, first}, bounds), "");
    }
  }
  EXPECT_EQ(verify(operations, bounds), "");
}

}  // namespace rdmacoll
