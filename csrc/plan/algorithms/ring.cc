// Ring: one lane, channel 0, from the previous rank to the next.
#include "csrc/plan/algorithms/ring.h"

#include "csrc/plan/builder.h"

namespace rdmacoll {
namespace {

struct Ring {
  int rank;
  int world;

  uint16_t previous() const { return around(rank, -1, world); }
  uint16_t next() const { return around(rank, +1, world); }
  BlockRange at(int distance) const { return block(around(rank, distance, world)); }

  // Of partial sums, and of whole blocks.
  Operand from_previous(BlockRange range) const { return slot(previous(), range); }
  Operand to_next(BlockRange range) const { return peer_slot(next(), range); }
  Operand placed_here(BlockRange range) const { return placed(previous(), range); }
  Operand output_next(BlockRange range) const { return peer_output(next(), range); }

  // The hops in which partial sums travel, but for the last: it is the caller's. The sum that
  // starts here is of the block `start` away and ends at the rank before.
  void sum_up(PlanBuilder& plan, int start) const {
    plan.copy(input(at(start)), {to_next(at(start))});
    for (int hop = 1; hop < world - 1; ++hop) {
      const BlockRange range = at(start - hop);
      plan.reduce({from_previous(range), input(range)}, {to_next(range)});
    }
  }

  // Whole blocks travel; the first to come is the one `start` away.
  void pass_on(PlanBuilder& plan, int start) const {
    for (int hop = 0; hop < world - 2; ++hop) {
      const BlockRange range = at(start - hop);
      plan.copy(placed_here(range), {output(range), output_next(range)});
    }
    const BlockRange last = at(start - (world - 2));
    plan.copy(placed_here(last), {output(last)});
  }
};

}  // namespace

Plan ring_all_reduce(uint16_t rank, uint16_t world) {
  const Ring ring{rank, world};
  PlanBuilder plan(Collective::AllReduce, Algorithm::Ring, rank, world, world);
  plan.lane();
  ring.sum_up(plan, 0);
  const BlockRange done = ring.at(+1);
  plan.finish({ring.from_previous(done), input(done)}, {output(done), ring.output_next(done)});
  ring.pass_on(plan, 0);
  return plan.take();
}

Plan ring_all_gather(uint16_t rank, uint16_t world) {
  const Ring ring{rank, world};
  PlanBuilder plan(Collective::AllGather, Algorithm::Ring, rank, world, world);
  plan.lane();
  plan.copy(input(block(rank)), {output(block(rank)), ring.output_next(block(rank))});
  ring.pass_on(plan, -1);
  return plan.take();
}

Plan ring_reduce_scatter(uint16_t rank, uint16_t world) {
  const Ring ring{rank, world};
  PlanBuilder plan(Collective::ReduceScatter, Algorithm::Ring, rank, world, world);
  plan.lane();
  ring.sum_up(plan, -1);
  plan.finish({ring.from_previous(block(rank)), input(block(rank))}, {output(block(rank))});
  return plan.take();
}

}  // namespace rdmacoll
