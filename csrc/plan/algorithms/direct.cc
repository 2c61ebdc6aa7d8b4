// Direct: a lane per peer and direction.
#include "csrc/plan/algorithms/direct.h"

#include "csrc/plan/builder.h"

namespace rdmacoll {
namespace {

constexpr uint8_t kContributions =
    kOrderedChannel + 1;  // of an all_reduce, whose results are placed

// Everybody sends each block to the rank of its number, which folds it. The lane of the fold is
// left open.
void fold_own_block(PlanBuilder& plan, uint16_t rank, uint16_t world, uint8_t channel) {
  for (uint16_t peer : others_from(rank, world)) {
    plan.lane();
    plan.copy(input(block(peer)), {peer_slot(peer, block(peer), channel)});
  }
  Operands contributions;
  for (uint16_t peer = 0; peer < world; ++peer) {
    contributions.push_back(peer == rank ? input(block(rank)) : slot(peer, block(rank), channel));
  }
  plan.lane();
  plan.finish(contributions, {output(block(rank))});
}

}  // namespace

Plan direct_all_reduce(uint16_t rank, uint16_t world) {
  PlanBuilder plan(Collective::AllReduce, Algorithm::Direct, rank, world, world);
  fold_own_block(plan, rank, world, kContributions);
  for (uint16_t peer : others_from(rank, world)) {
    plan.copy(output(block(rank)), {peer_output(peer, block(rank))});
  }
  for (uint16_t peer : others_from(rank, world)) {
    plan.lane();
    plan.copy(placed(peer, block(peer)), {output(block(peer))});
  }
  return plan.take();
}

Plan direct_all_gather(uint16_t rank, uint16_t world) {
  PlanBuilder plan(Collective::AllGather, Algorithm::Direct, rank, world, world);
  for (uint16_t peer : others_from(rank, world)) {
    plan.lane();
    plan.copy(input(block(rank)), {peer_output(peer, block(rank))});
    plan.lane();
    plan.copy(placed(peer, block(peer)), {output(block(peer))});
  }
  plan.lane();
  plan.copy(input(block(rank)), {output(block(rank))});
  return plan.take();
}

Plan direct_reduce_scatter(uint16_t rank, uint16_t world) {
  PlanBuilder plan(Collective::ReduceScatter, Algorithm::Direct, rank, world, world);
  fold_own_block(plan, rank, world, 0);
  return plan.take();
}

Plan direct_all_to_all(uint16_t rank, uint16_t world) {
  PlanBuilder plan(Collective::AllToAll, Algorithm::Direct, rank, world, 2 * world);
  for (uint16_t peer : others_from(rank, world)) {
    plan.lane();
    plan.copy(input(block(peer)), {peer_output(peer, block(peer))});
    plan.lane();
    plan.copy(placed(peer, block(world + peer)), {output(block(world + peer))});
  }
  plan.lane();
  plan.copy(input(block(rank)), {output(block(world + rank))});
  return plan.take();
}

Plan direct_gather(uint16_t rank, uint16_t world, uint16_t root) {
  PlanBuilder plan(Collective::Gather, Algorithm::Direct, rank, world, world);
  plan.lane();
  if (rank != root) {
    plan.copy(input(block(rank)), {peer_output(root, block(rank))});
    return plan.take();
  }
  plan.copy(input(block(rank)), {output(block(rank))});
  for (uint16_t peer : others_from(rank, world)) {
    plan.lane();
    plan.copy(placed(peer, block(peer)), {output(block(peer))});
  }
  return plan.take();
}

Plan direct_scatter(uint16_t rank, uint16_t world, uint16_t root) {
  PlanBuilder plan(Collective::Scatter, Algorithm::Direct, rank, world, world);
  if (rank != root) {
    plan.lane();
    plan.copy(placed(root, block(rank)), {output(block(rank))});
    return plan.take();
  }
  for (uint16_t peer : others_from(rank, world)) {
    plan.lane();
    plan.copy(input(block(peer)), {peer_output(peer, block(peer))});
  }
  plan.lane();
  plan.copy(input(block(rank)), {output(block(rank))});
  return plan.take();
}

Plan direct_mapped_all_gather(uint16_t rank, uint16_t world) {
  PlanBuilder plan(Collective::AllGather, Algorithm::Direct, rank, world, world);
  plan.lane();
  plan.copy(input(block(rank)), {stage(block(rank)), output(block(rank))});
  for (uint16_t peer : others_from(rank, world)) {
    plan.lane();
    plan.copy(peer_stage(peer, block(peer)), {output(block(peer))});
  }
  return plan.take();
}

Plan direct_mapped_broadcast(uint16_t rank, uint16_t world, uint16_t root) {
  PlanBuilder plan(Collective::Broadcast, Algorithm::Direct, rank, world, 1);
  plan.lane();
  if (rank == root) {
    plan.copy(input(block(0)), {stage(block(0))});
  } else {
    plan.copy(peer_stage(root, block(0)), {output(block(0))});
  }
  return plan.take();
}

}  // namespace rdmacoll
