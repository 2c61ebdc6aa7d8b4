// Rails, all_reduce. Part p has a block for each island: the owner of p there makes its result.
#include "csrc/plan/layered/channels.h"
#include "csrc/plan/layered/parts.h"
#include "csrc/plan/layered/rails.h"

namespace rdmacoll {
namespace {

struct Seat {
  uint16_t rank;
  const Islands& islands;
  uint16_t island = islands.of(rank);
  std::vector<uint16_t> other_islands = islands_from(island, islands);
  Parts parts{islands, islands.count()};
  BlockRange all = blocks(0, parts.blocks());
  Parts::Range mine = parts.of(rank);

  BlockRange block_of(uint32_t part, uint32_t of_island) const {
    return block(part * islands.count() + of_island);
  }

  // The island's sum of each block goes to its owner there; that of the own island waits in a slot
  // of this rank's for the others.
  void sum_up(PlanBuilder& plan) const {
    const auto sum_to = [&](BlockRange block, uint16_t owner) {
      const uint16_t first = parts.blocks_of(rank).first;
      const Operands sources = island_inputs(rank, islands, block, kInputs, first);
      plan.reduce(sources, {peer_slot(owner, block, kSums)});
    };
    plan.lane();
    plan.hold_stages(plan.others(), kInputs, all);
    for (uint32_t part = mine.begin; part < mine.end; ++part) {
      for (uint16_t other : other_islands) {
        sum_to(block_of(part, other), parts.owner(part, other));
      }
      if (!plan.others().empty()) sum_to(block_of(part, island), rank);
    }
    plan.release_stages(plan.others(), kInputs, all);
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
    for (uint32_t part = mine.begin; part < mine.end; ++part) {
      for (uint16_t other : other_islands) {
        const BlockRange block = block_of(part, other);
        Operands destinations{output(block)};
        if (!plan.others().empty()) destinations.push_back(stage(block, kRelayed));
        plan.copy(placed(parts.owner(part, other), block), destinations);
      }
    }
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
      for (uint32_t part = theirs.begin; part < theirs.end; ++part) {
        for (uint16_t other : other_islands) {
          const BlockRange block = block_of(part, other);
          plan.copy(peer_stage(peer, block, kRelayed), {output(block)});
        }
      }
    }
  }
};

}  // namespace

Plan rails_all_reduce(uint16_t rank, const Islands& islands, uint16_t) {
  const Seat seat{rank, islands};
  PlanBuilder plan(Collective::AllReduce, Algorithm::Rails, rank, islands, seat.parts.blocks());
  publish_inputs(plan, seat.parts);
  seat.sum_up(plan);
  seat.finish(plan);
  seat.relay(plan);
  seat.collect(plan);
  plan.cut_alike(1, seat.parts.blocks());
  return plan.take();
}

}  // namespace rdmacoll
