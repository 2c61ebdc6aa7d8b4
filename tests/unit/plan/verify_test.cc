// The prover's own tests: small wrong worlds, one per thing that it promises to find, and what it
// says about them.
#include "csrc/plan/verify/verify.h"

#include <gtest/gtest.h>

#include "csrc/plan/builder.h"
#include "tests/unit/plan/worlds.h"

namespace rdmacoll::verify_test {
namespace {

const BlockRange kAll = block(0);

PlanBuilder all_reduce_plan(uint16_t rank) {
  PlanBuilder plan(Collective::AllReduce, Algorithm::OneShot, rank, 2, 1);
  plan.lane();
  return plan;
}

WorldPlan world_of(PlanBuilder& first, PlanBuilder& second, uint64_t bytes = 1) {
  WorldPlan operation;
  operation.plans = {first.take(), second.take()};
  operation.islands = Islands::apart(2);
  operation.bytes = bytes;
  return operation;
}

// One lane that sends and then folds, as one_shot has it; wrong folds go in the place of `fold`.
template <typename Fold>
WorldPlan exchange(Fold fold, uint64_t bytes = 1) {
  PlanBuilder plans[] = {all_reduce_plan(0), all_reduce_plan(1)};
  for (uint16_t rank : {0, 1}) {
    plans[rank].copy(input(kAll), {peer_slot(1 - rank, kAll)});
    fold(plans[rank], rank);
  }
  return world_of(plans[0], plans[1], bytes);
}

std::string verdict(const WorldPlan& operation, const Bounds& bounds = {}) {
  return verify(twice(operation), bounds);
}

void expect_refuted(const std::string& verdict, const std::string& why) {
  EXPECT_NE(verdict.find(why), std::string::npos) << "verdict: \"" << verdict << "\"";
}

TEST(VerifyTest, ASoundExchangeIsProved) {
  const WorldPlan operation = exchange([](PlanBuilder& plan, uint16_t rank) {
    Operands sources{input(kAll), slot(1 - rank, kAll)};
    if (rank == 1) std::swap(sources[0], sources[1]);
    plan.finish(sources, {output(kAll)});
  });
  EXPECT_EQ(verdict(operation), "");
}

// Why one_shot sends nothing zero-copy: in place its result may come before the peer has read its
// input.
TEST(VerifyTest, ASourceThatIsWrittenWhileItIsRead) {
  WorldPlan operation = exchange([](PlanBuilder& plan, uint16_t rank) {
    Operands sources{input(kAll), slot(1 - rank, kAll)};
    if (rank == 1) std::swap(sources[0], sources[1]);
    plan.finish(sources, {output(kAll)});
  });
  operation.in_place = true;
  EXPECT_EQ(verdict(operation), "");
  operation.zero_copy_senders = 0b01;
  expect_refuted(verdict(operation), "while another lane");
  operation.in_place = false;
  EXPECT_EQ(verdict(operation), "");
}

TEST(VerifyTest, ASourceOfAnotherBlockThanTheReaderTakes) {
  WorldPlan operation = plans_of({Collective::ReduceScatter, Algorithm::TwoShot, true}, 2);
  operation.block_bytes = {{1, 2}, {1, 2}};
  operation.zero_copy_senders = 0b01;
  const Bounds bounds{.stage_bytes = 8};
  EXPECT_EQ(verdict(operation, bounds), "");
  for (Step& step : operation.plans[0].steps) {
    if (step.kind != StepKind::Signal || step.operands == 0) continue;
    operation.plans[0].operands[step.first_operand].blocks = block(0);
  }
  expect_refuted(verdict(operation, bounds), "mistakes a source's beginning");
}

TEST(VerifyTest, RanksThatFoldInDifferentOrders) {
  WorldPlan operation = exchange([](PlanBuilder& plan, uint16_t rank) {
    plan.finish({input(kAll), slot(1 - rank, kAll)}, {output(kAll)});
  });
  // Those that promise rank order must keep it; the others must agree.
  expect_refuted(verdict(operation), "output of rank 1, block 0, byte 0: not folded in rank order");
  for (Plan& plan : operation.plans) plan.algorithm = Algorithm::Tree;
  expect_refuted(verdict(operation), "output of rank 1, block 0, byte 0: folded in another order");
}

TEST(VerifyTest, ASumThatIsFoldedTwiceIsNotInRankOrder) {
  WorldPlan operation = plans_of({Collective::AllReduce, Algorithm::Ring, false}, 3);
  operation.bytes = 3;
  EXPECT_EQ(verdict(operation), "");
  for (Plan& plan : operation.plans) plan.algorithm = Algorithm::Direct;
  expect_refuted(verdict(operation), "not folded in rank order");
}

TEST(VerifyTest, AContributionCountedTwice) {
  const WorldPlan operation = exchange([](PlanBuilder& plan, uint16_t rank) {
    plan.finish({input(kAll), slot(1 - rank, kAll), input(kAll)}, {output(kAll)});
  });
  expect_refuted(verdict(operation), "counts a contribution twice");
}

TEST(VerifyTest, AMissingFinish) {
  const WorldPlan operation = exchange([](PlanBuilder& plan, uint16_t rank) {
    plan.reduce({input(kAll), slot(1 - rank, kAll)}, {output(kAll)});
  });
  expect_refuted(verdict(operation), "completes a sum unmarked");
}

TEST(VerifyTest, TheMessageNamesOperationRankLaneStepAndTile) {
  const WorldPlan operation = exchange(
      [](PlanBuilder& plan, uint16_t rank) {
        plan.reduce({input(kAll), slot(1 - rank, kAll)}, {output(kAll)});
      },
      9);
  expect_refuted(verdict(operation),
                 "operation 0 (all_reduce one_shot), rank 1, lane 0, step 4 (Reduce, blocks 0+1), "
                 "tile 0");
}

TEST(VerifyTest, EverybodyWaitsBeforeAnybodySends) {
  PlanBuilder plans[] = {all_reduce_plan(0), all_reduce_plan(1)};
  for (uint16_t rank : {0, 1}) {
    plans[rank].finish({input(kAll), slot(1 - rank, kAll)}, {output(kAll)});
    plans[rank].copy(input(kAll), {peer_slot(1 - rank, kAll)});
  }
  expect_refuted(verdict(world_of(plans[0], plans[1])), "waits for ever");
}

// Both send all their messages before they take any: right only where there are as many slots.
WorldPlan burst(int messages) {
  PlanBuilder plans[] = {PlanBuilder(Collective::AllToAll, Algorithm::Direct, 0, 2, 4),
                         PlanBuilder(Collective::AllToAll, Algorithm::Direct, 1, 2, 4)};
  for (uint16_t rank : {0, 1}) {
    const uint16_t peer = 1 - rank;
    const BlockRange sent = block(peer);
    const BlockRange received = block(2 + peer);
    plans[rank].lane();
    plans[rank].copy(input(block(rank)), {output(block(2 + rank))});
    for (int i = 0; i < messages; ++i) plans[rank].copy(input(sent), {peer_slot(peer, sent)});
    for (int i = 0; i < messages; ++i) plans[rank].copy(slot(peer, received), {output(received)});
  }
  WorldPlan operation = world_of(plans[0], plans[1]);
  operation.block_bytes = {{1, 1, 1, 1}, {1, 1, 1, 1}};
  return operation;
}

TEST(VerifyTest, MoreMessagesInFlightThanSlots) {
  expect_refuted(verdict(burst(3), {.slot_depth = 2}), "waits for ever");
  EXPECT_EQ(verdict(burst(3), {.slot_depth = 4}), "");
}

// Behind three messages only two credits have come back, so a burst of four finds three slots.
TEST(VerifyTest, CreditsThatComeBackLate) {
  EXPECT_EQ(verify({burst(4), burst(4)}, {.slot_depth = 4}), "");
  expect_refuted(verify({burst(3), burst(4)}, {.slot_depth = 4}), "waits for ever");
}

// The second lane sends the input while the first may already have folded onto it.
TEST(VerifyTest, AnInputSentWhileItIsOverwrittenInPlace) {
  PlanBuilder plans[] = {all_reduce_plan(0), all_reduce_plan(1)};
  for (uint16_t rank : {0, 1}) {
    Operands sources{input(kAll), slot(1 - rank, kAll)};
    if (rank == 1) std::swap(sources[0], sources[1]);
    plans[rank].finish(sources, {output(kAll)});
    plans[rank].lane();
    plans[rank].copy(input(kAll), {peer_slot(1 - rank, kAll)});
  }
  WorldPlan operation = world_of(plans[0], plans[1]);
  EXPECT_EQ(verdict(operation), "");
  operation.in_place = true;
  expect_refuted(verdict(operation), "while another lane writes");
}

TEST(VerifyTest, TwoLanesThatWriteOneOutput) {
  WorldPlan operation = exchange([](PlanBuilder& plan, uint16_t rank) {
    Operands sources{input(kAll), slot(1 - rank, kAll)};
    if (rank == 1) std::swap(sources[0], sources[1]);
    plan.finish(sources, {output(kAll)});
    plan.lane();
    plan.copy(input(kAll), {output(kAll)});
  });
  expect_refuted(verdict(operation), "writes while another lane");
}

// A message that says nothing about the fold makes the last lane run late, but not ordered.
TEST(VerifyTest, ALaneThatReadsWhatAnotherHasWritten) {
  WorldPlan operation = exchange([](PlanBuilder& plan, uint16_t rank) {
    const uint16_t peer = 1 - rank;
    Operands sources{input(kAll), slot(peer, kAll)};
    if (rank == 1) std::swap(sources[0], sources[1]);
    plan.finish(sources, {output(kAll)});
    plan.lane();
    plan.copy(input(kAll), {peer_slot(peer, kAll, 1)});
    plan.lane();
    plan.wait(Counter::Data, peer, 1, kAll);
    plan.copy(output(kAll), {stage(kAll)});
  });
  operation.islands = Islands::together(2);
  expect_refuted(verdict(operation), "reads while another lane writes");
}

TEST(VerifyTest, AMessageThatNobodyTakes) {
  const WorldPlan operation = exchange([](PlanBuilder& plan, uint16_t rank) {
    Operands sources{input(kAll), slot(1 - rank, kAll)};
    if (rank == 1) std::swap(sources[0], sources[1]);
    plan.finish(sources, {output(kAll)});
    if (rank == 0) plan.copy(input(kAll), {peer_slot(1, kAll, 1)});
  });
  expect_refuted(verdict(operation), "from rank 0 to 1 on channel 1: 2 claimed, 2 sent, 0 waited");
}

TEST(VerifyTest, TwoLanesThatSendOnOneChannel) {
  const WorldPlan operation = exchange([](PlanBuilder& plan, uint16_t rank) {
    plan.lane();
    plan.copy(input(kAll), {peer_slot(1 - rank, kAll)});
  });
  expect_refuted(verdict(operation), "two lanes in one direction of a channel");
}

TEST(VerifyTest, AnInputThatIsWritten) {
  const WorldPlan operation = exchange([](PlanBuilder& plan, uint16_t rank) {
    plan.finish({input(kAll), slot(1 - rank, kAll)}, {input(kAll)});
  });
  expect_refuted(verdict(operation), "writes the input");
}

TEST(VerifyTest, AnOutputThatTheRankDoesNotHave) {
  PlanBuilder plans[] = {PlanBuilder(Collective::Reduce, Algorithm::OneShot, 0, 2, 1),
                         PlanBuilder(Collective::Reduce, Algorithm::OneShot, 1, 2, 1)};
  plans[0].lane();
  plans[0].finish({input(kAll), slot(1, kAll)}, {output(kAll)});
  plans[1].lane();
  plans[1].copy(input(kAll), {output(kAll), peer_slot(0, kAll)});
  expect_refuted(verdict(world_of(plans[0], plans[1])),
                 "names a block that this rank does not have");
}

TEST(VerifyTest, AStageReadByAPeerThatIsNotMapped) {
  WorldPlan operation = plans_of({Collective::Broadcast, Algorithm::Direct, true}, 3);
  operation.bytes = 1;
  EXPECT_EQ(verdict(operation), "");
  operation.islands = Islands::of_shape("2+1").take();
  expect_refuted(verdict(operation), "a peer that is not mapped");
}

TEST(VerifyTest, AStageThatOnlySomeAreSent) {
  WorldPlan operation = plans_of({Collective::Broadcast, Algorithm::Direct, true}, 3);
  operation.bytes = 1;
  PlanBuilder root(Collective::Broadcast, Algorithm::Direct, 0, 3, 1);
  root.lane();
  root.wait(Counter::Credit, 1, 2, kAll);
  root.bare_copy(input(kAll), {stage(kAll)});
  root.signal(Counter::Data, 1, 2, kAll);
  operation.plans[0] = root.take();
  PlanBuilder idle(Collective::Broadcast, Algorithm::Direct, 2, 3, 1);
  idle.cut_alike(0, 1);
  operation.plans[2] = idle.take();
  expect_refuted(verdict(operation), "writes a stage that it has no credit for");
}

TEST(VerifyTest, ABarrierThatOneRankPassesEarly) {
  PlanBuilder plans[] = {PlanBuilder(Collective::Barrier, Algorithm::Dissemination, 0, 2, 1),
                         PlanBuilder(Collective::Barrier, Algorithm::Dissemination, 1, 2, 1)};
  plans[0].lane();
  plans[0].wait(Counter::Credit, 1, 0, kToken);
  plans[0].signal(Counter::Data, 1, 0, kToken);
  plans[1].lane();
  plans[1].wait(Counter::Data, 0, 0, kToken);
  plans[1].signal(Counter::Credit, 0, 0, kToken);
  expect_refuted(verdict(world_of(plans[0], plans[1])), "passes the barrier before rank 1");
}

TEST(VerifyTest, AMessageLargerThanASlot) {
  WorldPlan operation = plans_of({Collective::AllReduce, Algorithm::HalvingDoubling, false}, 4);
  operation.bytes = 40;
  for (Plan& plan : operation.plans) plan.slot_blocks = 1;
  expect_refuted(verdict(operation), "a message larger than a slot");
}

TEST(VerifyTest, EndsThatDisagreeAboutABlocksSize) {
  WorldPlan operation = plans_of({Collective::AllGather, Algorithm::Direct, false}, 2);
  operation.block_bytes = {{3, 2}, {3, 1}};
  expect_refuted(verdict(operation), "waits for 2 bytes, but the message has 1");
}

}  // namespace
}  // namespace rdmacoll::verify_test
