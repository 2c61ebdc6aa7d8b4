// Proofs: every collective x algorithm x world x size, in place and out of place, any root, each
// operation twice in a row.
#include <gtest/gtest.h>

#include "tests/how_much.h"
#include "tests/unit/plan/proofs.h"

namespace rdmacoll::prove_test {
namespace {

using Worlds = std::vector<uint16_t>;

constexpr uint16_t kLargestWorld = kSanitized ? 8 : 16;
Worlds large_worlds() { return kSanitized ? Worlds{17} : Worlds{17, 23, 32}; }
Worlds chunked_worlds() {
  return kSanitized && !is_nightly() ? Worlds{2, 3, 5} : Worlds{2, 3, 4, 5, 7, 8};
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
        prove_sizes(subject.name(), operation, 1, 2);
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
    prove_sizes(subject.name(), operation, 1, 1024);
  }
}

TEST_P(ProveTest, OtherChunksAndDepths) {
  const Subject& subject = GetParam();
  for (uint16_t world : chunked_worlds()) {
    WorldPlan operation = plans_of(subject, world, world - 1);
    operation.in_place = true;
    prove_sizes(subject.name(), operation, 3, 2);
    prove_sizes(subject.name(), operation, 2, 4);
    Bounds coarse = bounds_for(operation, 6, 2);
    coarse.grain = 2;
    for (uint64_t bytes = 0; bytes < 40; ++bytes) {
      operation.bytes = bytes;
      if (!is_contiguous(subject.collective)) set_block_sizes(operation, {bytes, 2, bytes / 2});
      prove(subject.name(), operation, coarse);
    }
  }
}

TEST_P(ProveTest, LargeWorlds) {
  const Subject& subject = GetParam();
  for (uint16_t world : large_worlds()) {
    WorldPlan operation = plans_of(subject, world, world / 3);
    operation.in_place = true;
    operation.bytes = 3 * operation.plans[0].blocks + 1;
    if (!is_contiguous(subject.collective)) set_block_sizes(operation, {3, 1, 0, 2});
    prove(subject.name(), operation, bounds_for(operation, 1, 2));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProveTest, testing::ValuesIn(all_subjects()),
                         [](const auto& test) { return test.param.name(); });

TEST(ProveSequenceTest, AnyOperationBehindAnyOther) {
  for (uint16_t world : {2, 3, 5}) {
    std::vector<WorldPlan> operations;
    for (const Subject& subject : all_subjects()) {
      operations.push_back(plans_of(subject, world, 1));
      operations.back().islands = Islands::together(world);  // where the others are right, too
    }
    prove_any_behind_any(operations);
  }
}

}  // namespace
}  // namespace rdmacoll::prove_test
