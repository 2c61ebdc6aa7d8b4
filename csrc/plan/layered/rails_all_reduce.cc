// Rails, all_reduce. Part p has a block for each island: the owner of p there makes its result.
// Floor: plan/layered.
#include "csrc/plan/layered/channels.h"
#include "csrc/plan/layered/parts.h"
#include "csrc/plan/layered/rails.h"

namespace rdmacoll {
namespace {

struct Seat {
  uint16_t rank;
  const Islands& islands;
  Parts parts;
  uint16_t island = islands.of(rank);
  std::vector<uint16_t> other_islands = islands_from(island, islands);
  Parts::Range mine = parts.of(rank);

  BlockRange block_of(uint32_t part, uint32_t of_island) const {
    return parts.block(part, of_island);
  }

  // All lanes deal with group by group, part by part in a group, in the same order.
  template <typename Call>  // part, island
  void for_each_relayed(Parts::Range range, const Call& call) const {
    for (uint32_t group : parts.groups_of(island)) {
      const std::vector<uint16_t> others = parts.others_in(group, island);
      for (uint32_t part = range.begin; part < range.end; ++part) {
        for (uint16_t other : others) call(part, other);
      }
    }
  }

  // The island's sum of each block goes to its owner there; that of the own island waits in a slot
  // of this rank's for the others.
  void sum_up(PlanBuilder& plan) const {
    plan.lane();
    for (uint32_t group : parts.groups_of(island)) sum_up(plan, group);
  }

  void sum_up(PlanBuilder& plan, uint32_t group) const {
    const std::vector<uint16_t> others = parts.others_in(group, island);
    const auto sum_to = [&](BlockRange block, uint16_t owner) {
      const uint16_t first = parts.blocks_of(rank, group).first;
      const Operands sources = island_inputs(rank, islands, block, kInputs, first);
      plan.reduce(sources, {peer_slot(owner, block, kSums)});
    };
    plan.hold_stages(plan.others(), kInputs, parts.group(group));
    for (uint32_t part = mine.begin; part < mine.end; ++part) {
      for (uint16_t other : others) sum_to(block_of(part, other), parts.owner(part, other));
      const bool own = group == parts.group_of(island) && !plan.others().empty();
      if (own) sum_to(block_of(part, island), rank);
    }
    plan.release_stages(plan.others(), kInputs, parts.group(group));
  }

  void finish(PlanBuilder& plan) const {
    plan.lane();
    for (uint32_t part = mine.begin; part < mine.end; ++part) {
      const BlockRange block = block_of(part, island);
      Operands sums;
      for (uint32_t from = 0; from < islands.count(); ++from) {
        const bool as_it_is = from == island && plan.others().empty();
        sums.push_back(as_it_is ? input(block) : slot(parts.owner(part, from), block, kSums));
      }
      Operands destinations{output(block)};
      if (!plan.others().empty()) destinations.push_back(stage(block, kResults));
      for (uint16_t other : other_islands) {
        destinations.push_back(peer_output(parts.owner(part, other), block));
      }
      plan.finish(sums, destinations);
    }
  }

  // What the owners on other islands have made comes in, and is passed on inside.
  void relay(PlanBuilder& plan) const {
    plan.lane();
    for_each_relayed(mine, [&](uint32_t part, uint16_t other) {
      const BlockRange block = block_of(part, other);
      Operands destinations{output(block)};
      if (!plan.others().empty()) destinations.push_back(stage(block, kRelayed));
      plan.copy(placed(parts.owner(part, other), block), destinations);
    });
  }

  // A lane for each peer: what one of them waits for may need another's messages to be taken.
  void collect(PlanBuilder& plan) const {
    for (uint16_t peer : plan.others()) {
      const Parts::Range theirs = parts.of(peer);
      plan.lane();
      for (uint32_t part = theirs.begin; part < theirs.end; ++part) {
        const BlockRange block = block_of(part, island);
        plan.copy(peer_stage(peer, block, kResults), {output(block)});
      }
      plan.lane();
      for_each_relayed(theirs, [&](uint32_t part, uint16_t other) {
        const BlockRange block = block_of(part, other);
        plan.copy(peer_stage(peer, block, kRelayed), {output(block)});
      });
    }
  }
};

}  // namespace

Plan rails_all_reduce_in_groups(uint16_t rank, const Islands& islands, uint32_t stage_blocks) {
  const Seat seat{rank, islands, Parts(islands, islands.count(), stage_blocks)};
  PlanBuilder plan(Collective::AllReduce, Algorithm::Rails, rank, islands, seat.parts.blocks());
  publish_inputs(plan, seat.parts, seat.island);
  seat.sum_up(plan);
  seat.finish(plan);
  seat.relay(plan);
  seat.collect(plan);
  plan.cut_alike(1, seat.parts.group_blocks());
  return plan.take();
}

Plan rails_all_reduce(uint16_t rank, const Islands& islands, uint16_t) {
  return rails_all_reduce_in_groups(rank, islands, kStageBlocks);
}

}  // namespace rdmacoll
