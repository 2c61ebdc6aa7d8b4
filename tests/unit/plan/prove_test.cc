// Proofs: every collective x algorithm x world x size, in place and out of place, any root, each
// operation twice in a row.
#include <gtest/gtest.h>

#include "tests/unit/plan/worlds.h"

namespace rdmacoll {
namespace {

// Nobody sends zero-copy or grants, or everybody, each with each. That proves what is in between
// (verify.h); every other rank is tried all the same, where it costs little.
struct Way {
  uint64_t zero_copy_senders, granters;
};
constexpr uint64_t kAll = ~uint64_t{0};
constexpr uint64_t kEveryOther = 0x5555555555555555;
constexpr Way kWays[] = {{0, 0}, {kAll, 0}, {0, kAll}, {kAll, kAll}, {kEveryOther, kEveryOther}};

// Sanitizers make it ten times as slow, and find nothing in a large world that is not in a small.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint16_t kLargestWorld = 8;
constexpr uint16_t kLargeWorlds[] = {17};
#else
constexpr uint16_t kLargestWorld = 16;
constexpr uint16_t kLargeWorlds[] = {17, 23, 32};
#endif

void prove(const Subject& subject, WorldPlan operation, const Bounds& bounds) {
  for (const Way& way : kWays) {
    const bool every_other = way.zero_copy_senders == kEveryOther;
    if (every_other && (operation.plans.size() > 5 || bounds.slot_depth > 2)) continue;
    if (way.granters == kAll && !any_placed(operation)) continue;
    operation.zero_copy_senders = way.zero_copy_senders;
    operation.granters = way.granters;
    const std::string why = verify(twice(operation), bounds);
    EXPECT_EQ(why, "") << subject.name() << ", world " << operation.plans.size() << ", "
                       << operation.bytes << " bytes, root " << operation.root
                       << (operation.in_place ? ", in place" : "") << ", zero_copy_senders "
                       << way.zero_copy_senders << ", granters " << way.granters;
  }
}

// Sizes around the awkward places; the last has five whole windows and a ragged one.
std::vector<uint64_t> buffer_sizes(const Plan& plan, uint64_t chunk) {
  const uint64_t world = plan.world;
  const uint64_t window = chunk * plan.blocks;
  return {0, 1, world - 1, world, world + 1, 7, 13, window, window + 1, 5 * window + 1};
}

std::vector<std::vector<uint64_t>> block_size_lists(uint64_t chunk) {
  return {{0}, {1}, {chunk}, {0, 0, 1}, {1, 0, 7, 2}, {3, 13, 0, 5, 1}, {5 * chunk + 1}};
}

void prove_sizes(const Subject& subject, WorldPlan& operation, uint64_t chunk, uint32_t depth) {
  const Bounds bounds = bounds_for(operation, chunk, depth);
  if (one_buffer(subject.collective)) {
    for (uint64_t bytes : buffer_sizes(operation.plans[0], chunk)) {
      operation.bytes = bytes;
      prove(subject, operation, bounds);
    }
    return;
  }
  for (const std::vector<uint64_t>& sizes : block_size_lists(chunk)) {
    set_block_sizes(operation, sizes);
    prove(subject, operation, bounds);
  }
}

std::vector<uint16_t> roots(const Subject& subject, uint16_t world) {
  if (!has_root(subject.collective)) return {0};
  std::vector<uint16_t> all;
  for (uint16_t root = 0; root < world; ++root) {
    const bool sampled = root < 2 || root == world / 2 || root + 1 == world;
    if (world <= 6 || sampled) all.push_back(root);
  }
  return all;
}

class ProveTest : public testing::TestWithParam<Subject> {};

TEST_P(ProveTest, EverySmallWorld) {
  const Subject& subject = GetParam();
  for (uint16_t world = 1; world <= kLargestWorld; ++world) {
    for (uint16_t root : roots(subject, world)) {
      WorldPlan operation = plans_of(subject, world, root);
      for (bool in_place : {false, true}) {
        operation.in_place = in_place;
        prove_sizes(subject, operation, 1, 2);
      }
    }
  }
}

// With slots for every message no credit orders anything (verify.h, "Which depth").
TEST_P(ProveTest, NoRaceIsHiddenByCredits) {
  const Subject& subject = GetParam();
  for (uint16_t world = 2; world <= kLargestWorld; ++world) {
    WorldPlan operation = plans_of(subject, world, world / 2);
    operation.in_place = true;
    prove_sizes(subject, operation, 1, 1024);
  }
}

TEST_P(ProveTest, OtherChunksAndDepths) {
  const Subject& subject = GetParam();
  for (uint16_t world : {2, 3, 4, 5, 7, 8}) {
    WorldPlan operation = plans_of(subject, world, world - 1);
    operation.in_place = true;
    prove_sizes(subject, operation, 3, 2);
    prove_sizes(subject, operation, 2, 4);
    Bounds coarse = bounds_for(operation, 6, 2);
    coarse.grain = 2;
    for (uint64_t bytes = 0; bytes < 40; ++bytes) {
      operation.bytes = bytes;
      if (!one_buffer(subject.collective)) set_block_sizes(operation, {bytes, 2, bytes / 2});
      prove(subject, operation, coarse);
    }
  }
}

TEST_P(ProveTest, LargeWorlds) {
  const Subject& subject = GetParam();
  for (uint16_t world : kLargeWorlds) {
    WorldPlan operation = plans_of(subject, world, world / 3);
    operation.in_place = true;
    operation.bytes = 3 * operation.plans[0].blocks + 1;
    if (!one_buffer(subject.collective)) set_block_sizes(operation, {3, 1, 0, 2});
    prove(subject, operation, bounds_for(operation, 1, 2));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProveTest, testing::ValuesIn(all_subjects()),
                         [](const auto& test) { return test.param.name(); });

// Different operations share the channels: nothing is drained between them.
TEST(ProveSequenceTest, AnyOperationBehindAnyOther) {
  const std::vector<Subject> subjects = all_subjects();
  for (uint16_t world : {2, 3, 5}) {
    std::vector<WorldPlan> operations;
    for (const Subject& subject : subjects) {
      WorldPlan operation = plans_of(subject, world, 1);
      operation.bytes = 3 * operation.plans[0].blocks + 1;
      if (!one_buffer(subject.collective)) set_block_sizes(operation, {3, 0, 1});
      operations.push_back(operation);
    }
    Bounds bounds;
    bounds.slot_bytes = bounds.stage_bytes = world;
    for (const WorldPlan& first : operations) {
      for (const WorldPlan& second : operations) {
        EXPECT_EQ(verify({first, second, first}, bounds), "");
      }
    }
    EXPECT_EQ(verify(operations, bounds), "");
  }
}

}  // namespace
}  // namespace rdmacoll
