// One-shot: one lane, channel 0.
#include "csrc/plan/algorithms/one_shot.h"

#include "csrc/plan/builder.h"

namespace rdmacoll {
namespace {

Operands contributions_in_rank_order(uint16_t rank, uint16_t world) {
  Operands sources;
  for (uint16_t peer = 0; peer < world; ++peer) {
    sources.push_back(peer == rank ? input(block(0)) : slot(peer, block(0)));
  }
  return sources;
}

}  // namespace

Plan one_shot_all_reduce(uint16_t rank, uint16_t world) {
  PlanBuilder plan(Collective::AllReduce, Algorithm::OneShot, rank, world, 1);
  plan.forbid_zero_copy();  // in place, the result may come before the last has read the input
  plan.lane();
  for (uint16_t peer : others_from(rank, world)) {
    plan.copy(input(block(0)), {peer_slot(peer, block(0))});
  }
  plan.finish(contributions_in_rank_order(rank, world), {output(block(0))});
  return plan.take();
}

Plan one_shot_reduce(uint16_t rank, uint16_t world, uint16_t root) {
  PlanBuilder plan(Collective::Reduce, Algorithm::OneShot, rank, world, 1);
  plan.lane();
  if (rank == root) {
    plan.finish(contributions_in_rank_order(rank, world), {output(block(0))});
  } else {
    plan.copy(input(block(0)), {peer_slot(root, block(0))});
  }
  return plan.take();
}

Plan one_shot_broadcast(uint16_t rank, uint16_t world, uint16_t root) {
  PlanBuilder plan(Collective::Broadcast, Algorithm::OneShot, rank, world, 1);
  plan.lane();
  if (rank != root) {
    plan.copy(placed(root, block(0)), {output(block(0))});
    return plan.take();
  }
  for (uint16_t peer : others_from(rank, world)) {
    plan.copy(input(block(0)), {peer_output(peer, block(0))});
  }
  return plan.take();
}

}  // namespace rdmacoll
