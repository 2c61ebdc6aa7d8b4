// Proofs of the plans of two levels: all layouts of few ranks, and samples of many.
#include <algorithm>

#include "tests/how_much.h"
#include "tests/unit/plan/layouts.h"
#include "tests/unit/plan/proofs.h"

namespace rdmacoll::prove_layers_test {
namespace {

using Shapes = std::vector<const char*>;

// Six ranks have 201 layouts, seven 875 and eight 4,138, which take a minute.
uint32_t largest_world() {
  if (kSanitized) return is_nightly() ? 5 : 4;
  return is_nightly() ? 8 : 6;
}
uint32_t largest_of_all_sizes() { return kSanitized && !is_nightly() ? 3 : 4; }
Shapes shapes() {
  if (kSanitized) return {"2x4", "1+7"};
  return {"2x8", "3+5",   "1+7",         "7+1",     "4x4",    "15+1",
          "8x2", "6+5+4", "2x1+3x3+2x5", "1+2+3+4", "16x1+2", "9+8"};
}
Shapes shapes_of_many_hosts() {
  if (kSanitized && !is_nightly()) return {"9x2"};
  return {"9x2", "11x2", "16x2", "21x1+2", "2+13x1+3", "4+3x3+5x1"};
}

std::vector<uint16_t> roots(Collective collective, uint32_t world) {
  if (!has_root(collective)) return {0};
  std::vector<uint16_t> all;
  for (uint16_t root = 0; root < world; ++root) all.push_back(root);
  return all;
}

// More tiles than slots, and blocks of different sizes.
void prove_ragged(const std::string& name, WorldPlan& operation, uint32_t depth) {
  operation.bytes = 5u * operation.plans[0].blocks + 1;
  if (!is_contiguous(operation.plans[0].collective)) set_block_sizes(operation, {5, 1, 0, 7, 2});
  prove(name, operation, bounds_for(operation, 2, depth));
}

class ProveLayersTest : public testing::TestWithParam<Layered> {};

TEST_P(ProveLayersTest, EveryLayoutOfFewRanks) {
  const auto [collective, algorithm] = GetParam();
  for (uint32_t world = 3; world <= largest_world(); ++world) {
    for_each_layout(world, [&](const Islands& islands) {
      for (uint16_t root : roots(collective, world)) {
        WorldPlan operation = plans_on(islands, collective, algorithm, root);
        for (bool in_place : {false, true}) {
          operation.in_place = in_place;
          if (world <= largest_of_all_sizes()) prove_sizes(GetParam().name(), operation, 1, 2);
          if (world <= 5 || in_place) prove_ragged(GetParam().name(), operation, 2);
        }
        if (world <= 5) prove_ragged(GetParam().name(), operation, 1024);
      }
    });
  }
}

TEST_P(ProveLayersTest, SamplesOfMany) {
  const auto [collective, algorithm] = GetParam();
  std::vector<Islands> samples{round_robin(4, 3), round_robin(2, 5)};
  for (const char* shape : shapes()) samples.push_back(Islands::of_shape(shape).take());
  for (const Islands& islands : samples) {
    const uint16_t last = static_cast<uint16_t>(islands.world() - 1);
    for (uint16_t root :
         has_root(collective) ? std::vector<uint16_t>{0, last} : std::vector<uint16_t>{0}) {
      WorldPlan operation = plans_on(islands, collective, algorithm, root);
      operation.in_place = true;
      prove_ragged(GetParam().name(), operation, 2);
      prove_ragged(GetParam().name(), operation, 1024);
    }
  }
}

// A fold is cut at whole elements.
TEST_P(ProveLayersTest, CoarseGrains) {
  const auto [collective, algorithm] = GetParam();
  for (const char* shape : {"2x2", "3+1", "2x1+2"}) {
    WorldPlan operation = plans_on(Islands::of_shape(shape).take(), collective, algorithm, 1);
    operation.in_place = true;
    Bounds coarse = bounds_for(operation, 6, 2);
    coarse.grain = 2;
    for (uint64_t bytes = 0; bytes < 60; bytes += 2) {
      operation.bytes = bytes;
      if (!is_contiguous(collective)) set_block_sizes(operation, {bytes, 2, bytes / 4 * 2});
      prove(GetParam().name(), operation, coarse);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProveLayersTest, testing::ValuesIn(all_layered()),
                         [](const auto& test) { return test.param.name(); });

// As on hundreds of hosts, where a stage does not hold all blocks of a tile.
class ProveGroupsTest : public testing::TestWithParam<Collective> {};

TEST_P(ProveGroupsTest, EveryLayoutOfFewRanks) {
  for (uint32_t world = 3; world <= largest_world() - 1; ++world) {
    for_each_layout(world, [&](const Islands& islands) {
      for (uint32_t stage_blocks : {1u, 4u}) {
        WorldPlan operation = rails_in_groups(islands, GetParam(), stage_blocks);
        prove_ragged("grouped", operation, 2);
        operation.in_place = true;
        prove_ragged("grouped", operation, world <= 5 ? 1024 : 2);
      }
    });
  }
}

TEST_P(ProveGroupsTest, SamplesOfMany) {
  std::vector<Islands> samples{round_robin(7, 2)};
  for (const char* shape : shapes()) samples.push_back(Islands::of_shape(shape).take());
  for (const Islands& islands : samples) {
    for (uint32_t stage_blocks : {1u, 7u}) {
      WorldPlan operation = rails_in_groups(islands, GetParam(), stage_blocks);
      operation.in_place = true;
      prove_ragged("grouped", operation, 2);
      prove_ragged("grouped", operation, 1024);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProveGroupsTest, testing::ValuesIn(kInGroups),
                         [](const auto& test) { return collective_name(test.param); });

// As of many hosts, where a message holds several blocks of them, and a round has several messages.
TEST(ProveRoundsTest, EveryLayoutOfFewRanks) {
  for (uint32_t world = 3; world <= largest_world() - 1; ++world) {
    for_each_layout(world, [&](const Islands& islands) {
      for (uint32_t message_blocks : {2u, 3u}) {
        WorldPlan operation = rounds_with(islands, message_blocks);
        operation.in_place = true;
        prove_ragged("rounds", operation, 2);
        prove_ragged("rounds", operation, 1024);
      }
    });
  }
}

TEST(ProveRoundsTest, SamplesOfManyHosts) {
  for (const char* shape : shapes_of_many_hosts()) {
    const Islands islands = Islands::of_shape(shape).take();
    for (uint32_t message_blocks : {1u, 2u, 3u, 16u}) {
      WorldPlan operation = rounds_with(islands, message_blocks);
      operation.in_place = true;
      prove_ragged("rounds", operation, 2);
      prove_ragged("rounds", operation, 1024);
    }
  }
}

class ProveHostOrderTest : public testing::TestWithParam<Layered> {};

// Renamed ranks still send to each other what the other waits for, and blocks go where they belong.
TEST_P(ProveHostOrderTest, EveryLayoutOfFewRanks) {
  const auto [collective, algorithm] = GetParam();
  for (uint32_t world = 3; world <= std::min(5u, largest_world()); ++world) {
    for_each_layout(world, [&](const Islands& islands) {
      if (islands.in_host_order()) return;
      for (uint16_t root : roots(collective, world)) {
        WorldPlan operation = plans_on(islands, collective, algorithm, root);
        prove_ragged(GetParam().name(), operation, 2);
        operation.in_place = true;
        prove_ragged(GetParam().name(), operation, 1024);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProveHostOrderTest, testing::ValuesIn(all_by_neighbours()),
                         [](const auto& test) { return test.param.name(); });

// Those of one level and of two share the channels.
TEST(ProveLayersSequenceTest, AnyOperationBehindAnyOther) {
  const Islands islands = Islands::of_shape("2+1").take();
  std::vector<WorldPlan> operations;
  for (const auto& [collective, algorithm] : all_layered()) {
    operations.push_back(plans_on(islands, collective, algorithm, 1));
  }
  const Layered flat[] = {{Collective::AllReduce, Algorithm::Ring},
                          {Collective::AllToAll, Algorithm::Direct},
                          {Collective::Broadcast, Algorithm::Tree},
                          {Collective::Gather, Algorithm::Direct}};
  for (const auto& [collective, algorithm] : flat) {
    operations.push_back(plans_on(islands, collective, algorithm, 1));
  }
  prove_any_behind_any(operations);
}

}  // namespace
}  // namespace rdmacoll::prove_layers_test
