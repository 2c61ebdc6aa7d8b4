// The prover against planted bugs: every step and operand of every plan, altered one at a time,
// must be refuted for some size. A mutant that survives is a bug in the prover or an idle step.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "csrc/plan/builder.h"
#include "csrc/plan/verify/shape.h"
#include "tests/how_much.h"
#include "tests/unit/plan/layouts.h"
#include "tests/unit/plan/worlds.h"

namespace rdmacoll::mutation_test {
namespace {

std::vector<uint16_t> worlds() {
  if (!kSanitized) return {2, 3, 4, 5};
  return is_nightly() ? std::vector<uint16_t>{2, 3} : std::vector<uint16_t>{3};
}
std::vector<const char*> layouts() {
  if (kSanitized) return {"2+1"};
  return {"2+1", "1+2", "2x2", "1+3", "2x1+2"};
}
std::vector<const char*> shapes_in_groups() {
  if (kSanitized && !is_nightly()) return {"2x2"};
  return {"2x2", "2x1+2"};
}
const char* shape_of_rounds() { return kSanitized && !is_nightly() ? "2x1+2" : "3x1+2"; }

// Sizes in which the blocks of a tile differ: ragged windows, empty blocks, more tiles than slots.
bool survives(WorldPlan operation, const Bounds& bounds) {
  const Plan& plan = operation.plans[0];
  const auto proved = [&] {
    for (bool in_place : {false, true}) {
      for (uint64_t everybody : {uint64_t{0}, ~uint64_t{0}}) {
        operation.in_place = in_place;
        operation.zero_copy_senders = operation.granters = everybody;
        if (!verify(twice(operation), bounds).empty()) return false;
      }
    }
    return true;
  };
  if (is_contiguous(plan.collective)) {
    for (uint64_t bytes = 4 * plan.blocks; bytes <= 6u * plan.blocks; ++bytes) {
      operation.bytes = bytes;
      if (!proved()) return false;
    }
    return true;
  }
  const std::vector<std::vector<uint64_t>> lists{
      {5, 6, 7, 1, 3}, {6, 0, 5}, {1, 9, 4, 0, 7, 12, 3}, {9, 2, 0, 3, 1}};
  for (const std::vector<uint64_t>& sizes : lists) {
    set_block_sizes(operation, sizes);
    if (!proved()) return false;
  }
  return true;
}

struct Mutation {
  std::string what;
  std::function<void(Plan&)> apply;
};

using Mutations = std::vector<Mutation>;

void drop_step(Plan& plan, uint32_t index) {
  plan.steps.erase(plan.steps.begin() + index);
  for (Lane& lane : plan.lanes) {
    if (index < lane.first_step) {
      --lane.first_step;
    } else if (index < lane.first_step + lane.steps) {
      --lane.steps;
    }
  }
}

bool is_move(const Step& step) {
  return step.kind == StepKind::Copy || step.kind == StepKind::Reduce;
}

// Steps of one lane, of which one moves data and the other lets it: their order matters. (Two
// waits, two signals or two copies in a row may often be exchanged, and a signal may come later:
// those are no bugs.)
bool order_matters(const Plan& plan, uint32_t index) {
  for (const Lane& lane : plan.lanes) {
    if (index < lane.first_step || index + 1 >= lane.first_step + lane.steps) continue;
    const Step& step = plan.steps[index];
    return is_move(step) != is_move(plan.steps[index + 1]) && step.kind != StepKind::Signal;
  }
  return false;
}

void add_step_mutations(const Plan& plan, uint32_t index, Mutations& mutations) {
  const std::string where = step_text(plan, index);
  const Step& step = plan.steps[index];
  const auto add = [&](const char* what, std::function<void(Step&)> change) {
    mutations.push_back({where + ": " + what, [=](Plan& mutant) { change(mutant.steps[index]); }});
  };
  mutations.push_back({where + ": dropped", [=](Plan& mutant) { drop_step(mutant, index); }});
  if (order_matters(plan, index)) {
    mutations.push_back({where + ": behind the next", [=](Plan& mutant) {
                           std::swap(mutant.steps[index], mutant.steps[index + 1]);
                         }});
  }
  // Of blocks that are all of one size a step says but how many there are.
  if (step.blocks.count != 0 && step.blocks.count < plan.blocks && !has_equal_blocks(plan)) {
    add("next block", [blocks = plan.blocks](Step& s) {
      s.blocks.first = (s.blocks.first + 1) % (blocks - s.blocks.count + 1);
    });
  }
  if (step.kind == StepKind::Reduce) {
    add("finishes differently", [](Step& s) { s.finishes = !s.finishes; });
    add("copies", [](Step& s) { s.kind = StepKind::Copy; });
  } else if (step.kind == StepKind::Copy) {
    // Without `finishes`, the fold of one source would be a copy.
    add("reduces", [](Step& s) { s.kind = StepKind::Reduce, s.finishes = true; });
  } else {
    add("other counter",
        [](Step& s) { s.counter = s.counter == Counter::Data ? Counter::Credit : Counter::Data; });
    add("other channel", [](Step& s) { s.channel ^= 1; });
    add("next peer", [world = plan.world](Step& s) { s.peer = (s.peer + 1) % world; });
    if (step.counter == Counter::Data) add("placed", [](Step& s) { s.placed = !s.placed; });
    if (step.operands != 0) add("no source", [](Step& s) { s.operands = 0; });
    add("signal for wait",
        [](Step& s) { s.kind = s.kind == StepKind::Wait ? StepKind::Signal : StepKind::Wait; });
  }
}

// A source whose bytes the plan keeps in the output as well: either is right.
bool is_one_of_two_sources(const Plan& plan, uint32_t index) {
  const Operand& source = plan.operands[index];
  bool is_home = false, kept = false;
  for (const Step& step : plan.steps) {
    const auto first = plan.operands.begin() + step.first_operand;
    if (step.kind == StepKind::Signal) is_home |= step.operands != 0 && step.first_operand == index;
    if (step.kind != StepKind::Copy || !(*first == source)) continue;
    kept |= std::find(first, first + step.operands, output(source.blocks)) != first + step.operands;
  }
  return is_home && kept;
}

// Whether messages of the stage channel may be read in their sources.
bool has_sources(const WorldPlan& world_plan, uint8_t channel) {
  return std::any_of(world_plan.plans.begin(), world_plan.plans.end(), [&](const Plan& plan) {
    return std::any_of(plan.operands.begin(), plan.operands.end(), [&](const Operand& operand) {
      return operand.buffer == Buffer::Stage && operand.channel == channel && operand.zero_copy;
    });
  });
}

// A slot holds these blocks from its first byte, and they are of one size with all others.
bool names_any_block(const Plan& plan, const Operand& operand) {
  const bool in_slot = operand.buffer == Buffer::Slot || operand.buffer == Buffer::PeerSlot;
  return in_slot && operand.message.count == 0 && has_equal_blocks(plan);
}

void add_operand_mutations(const WorldPlan& world_plan, const Plan& plan, uint32_t index,
                           Mutations& mutations) {
  const Operand& operand = plan.operands[index];
  const auto add = [&](const char* what, std::function<void(Operand&)> change) {
    mutations.push_back({"operand " + std::to_string(index) + ": " + what,
                         [=](Plan& mutant) { change(mutant.operands[index]); }});
  };
  if (operand.blocks.count < plan.blocks && !names_any_block(plan, operand)) {
    add("next block", [blocks = plan.blocks](Operand& o) {
      o.blocks.first = (o.blocks.first + 1) % (blocks - o.blocks.count + 1);
    });
  }
  if (is_one_of_two_sources(plan, index)) return;
  if (operand.buffer == Buffer::Input) {
    add("output", [](Operand& o) { o.buffer = Buffer::Output; });
    return;
  }
  if (operand.buffer == Buffer::Output) {
    add("input", [](Operand& o) { o.buffer = Buffer::Input; });
    return;
  }
  add("placed", [](Operand& o) { o.placed = !o.placed; });
  if (!operand.zero_copy) add("zero copy without a source", [](Operand& o) { o.zero_copy = true; });
  add("other channel", [](Operand& o) { o.channel ^= 1; });
  if (operand.buffer == Buffer::PeerStage && plan.blocks > 1 &&
      has_sources(world_plan, operand.channel)) {
    add("another beginning of the source", [blocks = plan.blocks](Operand& o) {
      o.source_first = static_cast<uint16_t>((o.source_first + 1) % blocks);
    });
  }
  if (operand.message.count != 0) {
    add("of a larger message", [](Operand& o) { ++o.message.count; });
    add("of a message that begins later", [](Operand& o) { ++o.message.first, --o.message.count; });
    add("the whole message", [](Operand& o) { o.message = {}; });
  }
  if (operand.buffer != Buffer::Stage) {
    add("next peer", [world = plan.world](Operand& o) { o.rank = (o.rank + 1) % world; });
  }
}

Mutations mutations_of(const WorldPlan& world_plan, const Plan& plan) {
  Mutations mutations;
  for (uint32_t i = 0; i < plan.steps.size(); ++i) add_step_mutations(plan, i, mutations);
  for (uint32_t i = 0; i < plan.operands.size(); ++i) {
    add_operand_mutations(world_plan, plan, i, mutations);
  }
  if (!plan.block_ranks.empty()) {
    mutations.push_back({"two ranks' blocks exchanged", [](Plan& mutant) {
                           std::swap(mutant.block_ranks.front(), mutant.block_ranks.back());
                         }});
    mutations.push_back({"a rank without a block", [](Plan& mutant) {
                           mutant.block_ranks.front() = mutant.block_ranks.back();
                         }});
  }
  return mutations;
}

// How many were planted.
size_t refute_all(const WorldPlan& sound) {
  size_t planted = 0;
  const Bounds bounds = bounds_for(sound, 2, 2);
  EXPECT_TRUE(survives(sound, bounds));
  for (const Plan& plan : sound.plans) {
    for (const Mutation& mutation : mutations_of(sound, plan)) {
      WorldPlan mutant = sound;
      mutation.apply(mutant.plans[plan.rank]);
      ++planted;
      EXPECT_FALSE(survives(mutant, bounds))
          << sound.islands.shape() << ", rank " << plan.rank << ", " << mutation.what;
    }
  }
  return planted;
}

class MutationTest : public testing::TestWithParam<Subject> {};

TEST_P(MutationTest, EveryPlantedBugIsRefuted) {
  size_t planted = 0;
  for (uint16_t world : worlds()) planted += refute_all(plans_of(GetParam(), world, 1));
  EXPECT_GT(planted, 50u);
}

INSTANTIATE_TEST_SUITE_P(All, MutationTest, testing::ValuesIn(all_subjects()),
                         [](const auto& test) { return test.param.name(); });

class LayeredMutationTest : public testing::TestWithParam<Layered> {};

TEST_P(LayeredMutationTest, EveryPlantedBugIsRefuted) {
  const auto [collective, algorithm] = GetParam();
  size_t planted = 0;
  for (const char* shape : layouts()) {
    planted += refute_all(plans_on(Islands::of_shape(shape).take(), collective, algorithm, 1));
  }
  EXPECT_GT(planted, 50u);
}

TEST(GroupsMutationTest, EveryPlantedBugIsRefuted) {
  for (Collective collective : kInGroups) {
    for (const char* shape : shapes_in_groups()) {
      refute_all(rails_in_groups(Islands::of_shape(shape).take(), collective, 2));
    }
  }
}

TEST(RoundsMutationTest, EveryPlantedBugIsRefuted) {
  refute_all(rounds_with(Islands::of_shape(shape_of_rounds()).take(), 2));
}

INSTANTIATE_TEST_SUITE_P(All, LayeredMutationTest, testing::ValuesIn(all_layered()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace rdmacoll::mutation_test
