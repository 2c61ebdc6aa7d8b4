// Two-shot: a lane that publishes inputs, one that folds, and those that collect results.
#include "csrc/plan/algorithms/two_shot.h"

#include "csrc/plan/builder.h"

namespace rdmacoll {
namespace {

constexpr uint8_t kInputsChannel = kFirstStageChannel;
constexpr uint8_t kResults = kFirstStageChannel + 1;

struct TwoShot {
  uint16_t rank;
  uint16_t world;
  std::vector<uint16_t> others = others_from(rank, world);
  BlockRange all = blocks(0, world);
  BlockRange mine = block(rank);

  // What the others fold goes into my stage, as one message.
  void publish(PlanBuilder& plan) const {
    plan.lane();
    for (uint16_t peer : others) plan.wait(Counter::Credit, peer, kInputsChannel, all);
    for (uint16_t peer : others)
      plan.bare_copy(input(block(peer)), {stage(block(peer), kInputsChannel)});
    for (uint16_t peer : others) plan.signal_data(peer, kInputsChannel, all, input(block(peer)));
  }

  // My block of everybody's input. The caller puts the steps of what it sends around
  // `destinations`.
  void fold(PlanBuilder& plan, const Operands& destinations) const {
    for (uint16_t peer : others) plan.wait(Counter::Data, peer, kInputsChannel, all);
    Operands contributions;
    for (uint16_t peer = 0; peer < world; ++peer) {
      contributions.push_back(peer == rank ? input(mine) : peer_stage(peer, mine, kInputsChannel));
    }
    plan.bare_finish(contributions, destinations);
  }

  void return_inputs(PlanBuilder& plan) const {
    for (uint16_t peer : others) plan.signal(Counter::Credit, peer, kInputsChannel, all);
  }
};

}  // namespace

Plan two_shot_all_reduce(uint16_t rank, uint16_t world) {
  const TwoShot shots{rank, world};
  PlanBuilder plan(Collective::AllReduce, Algorithm::TwoShot, rank, world, world);
  shots.publish(plan);
  plan.lane();
  for (uint16_t peer : shots.others) plan.wait(Counter::Credit, peer, kResults, shots.mine);
  shots.fold(plan, {output(shots.mine), stage(shots.mine, kResults)});
  for (uint16_t peer : shots.others) {
    plan.signal_data(peer, kResults, shots.mine, output(shots.mine));
  }
  shots.return_inputs(plan);
  plan.lane();
  for (uint16_t peer : shots.others) {
    plan.copy(peer_stage(peer, block(peer), kResults), {output(block(peer))});
  }
  return plan.take();
}

Plan two_shot_reduce(uint16_t rank, uint16_t world, uint16_t root) {
  const TwoShot shots{rank, world};
  PlanBuilder plan(Collective::Reduce, Algorithm::TwoShot, rank, world, world);
  shots.publish(plan);
  plan.lane();
  if (rank == root) {
    shots.fold(plan, {output(shots.mine)});
  } else {
    plan.wait(Counter::Credit, root, 0, shots.mine);
    shots.fold(plan, {peer_slot(root, shots.mine)});
    plan.signal(Counter::Data, root, 0, shots.mine);
  }
  shots.return_inputs(plan);
  if (rank == root) {
    plan.lane();
    for (uint16_t peer : shots.others) {
      plan.copy(slot(peer, block(peer)), {output(block(peer))});
    }
  }
  return plan.take();
}

Plan two_shot_reduce_scatter(uint16_t rank, uint16_t world) {
  const TwoShot shots{rank, world};
  PlanBuilder plan(Collective::ReduceScatter, Algorithm::TwoShot, rank, world, world);
  shots.publish(plan);
  plan.lane();
  shots.fold(plan, {output(shots.mine)});
  shots.return_inputs(plan);
  return plan.take();
}

}  // namespace rdmacoll
