// Rails, reduce and broadcast: along a chain of islands, which ends or begins at the root's.
#include "csrc/plan/layered/channels.h"
#include "csrc/plan/layered/parts.h"
#include "csrc/plan/layered/rails.h"

namespace rdmacoll {
namespace {

// A rank's place in the chain. Counted from the root's island, which is 0.
struct ChainSeat {
  uint16_t rank;
  const Islands& islands;
  uint16_t root;
  Parts parts{islands, 1};
  BlockRange all = blocks(0, parts.blocks());
  Parts::Range mine = parts.of(rank);
  uint32_t count = islands.count();
  uint32_t from_root = (islands.of(rank) + count - islands.of(root)) % count;

  bool at_root() const { return from_root == 0; }
  bool is_last() const { return from_root == count - 1; }
  uint16_t owner(uint32_t part, uint32_t steps_from_root) const {
    return parts.owner(part, (islands.of(root) + steps_from_root) % count);
  }
  uint16_t owner_nearer(uint32_t part) const { return owner(part, from_root - 1); }
  uint16_t owner_farther(uint32_t part) const { return owner(part, from_root + 1); }
};

// The sum of all that is farther from the root, and of this island, goes one island nearer.
void sum_up(PlanBuilder& plan, const ChainSeat& seat) {
  plan.lane();
  plan.hold_stages(plan.others(), kInputs, seat.all);
  for (uint32_t part = seat.mine.begin; part < seat.mine.end; ++part) {
    const uint16_t first = seat.parts.blocks_of(seat.rank).first;
    Operands sources = island_inputs(seat.rank, seat.islands, block(part), kInputs, first);
    if (!seat.is_last()) {
      sources.insert(sources.begin(), slot(seat.owner_farther(part), block(part), kSums));
    }
    if (seat.rank == seat.root) {
      plan.finish(sources, {output(block(part))});
    } else if (seat.at_root()) {
      plan.finish(sources, {peer_slot(seat.root, block(part))});
    } else {
      plan.reduce(sources, {peer_slot(seat.owner_nearer(part), block(part), kSums)});
    }
  }
  plan.release_stages(plan.others(), kInputs, seat.all);
}

// A rank of the root's island, from the root's stage: everything, and its own parts go on.
void take_from_root(PlanBuilder& plan, const ChainSeat& seat) {
  const BlockRange own = seat.parts.blocks_of(seat.rank);
  const auto take = [&](BlockRange range) {
    if (range.count == 0) return;
    plan.bare_copy(part_of_stage(seat.root, range, kInputs, 0), {output(range)});
  };
  plan.lane();
  plan.hold_stages({seat.root}, kInputs, seat.all);
  for (uint32_t part = seat.mine.begin; part < seat.mine.end; ++part) {
    plan.copy(part_of_stage(seat.root, block(part), kInputs, 0),
              {output(block(part)), peer_output(seat.owner_farther(part), block(part))});
  }
  take(blocks(0, own.first));
  take(blocks(own.first + own.count, seat.all.count - own.first - own.count));
  plan.release_stages({seat.root}, kInputs, seat.all);
}

void send_out(PlanBuilder& plan, const ChainSeat& seat) {
  plan.lane();
  for (uint32_t part = seat.mine.begin; part < seat.mine.end; ++part) {
    plan.copy(input(block(part)), {peer_output(seat.owner_farther(part), block(part))});
  }
  if (plan.others().empty()) return;
  plan.lane();
  plan.copy(input(seat.all), {stage(seat.all, kInputs)});
}

void pass_on(PlanBuilder& plan, const ChainSeat& seat) {
  plan.lane();
  for (uint32_t part = seat.mine.begin; part < seat.mine.end; ++part) {
    Operands destinations;
    if (!seat.is_last()) {
      destinations.push_back(peer_output(seat.owner_farther(part), block(part)));
    }
    if (!plan.others().empty()) destinations.push_back(stage(block(part), kRelayed));
    destinations.push_back(output(block(part)));
    plan.copy(placed(seat.owner_nearer(part), block(part)), destinations);
  }
  for (uint16_t peer : plan.others()) {  // what one waits for may need another's to be taken
    const Parts::Range theirs = seat.parts.of(peer);
    plan.lane();
    for (uint32_t part = theirs.begin; part < theirs.end; ++part) {
      plan.copy(peer_stage(peer, block(part), kRelayed), {output(block(part))});
    }
  }
}

}  // namespace

Plan rails_reduce(uint16_t rank, const Islands& islands, uint16_t root) {
  const ChainSeat seat{rank, islands, root};
  PlanBuilder plan(Collective::Reduce, Algorithm::Rails, rank, islands, seat.parts.blocks());
  publish_inputs(plan, seat.parts, islands.of(rank));
  sum_up(plan, seat);
  if (rank == root) {
    plan.lane();
    for (uint16_t peer : plan.others()) {
      const Parts::Range theirs = seat.parts.of(peer);
      for (uint32_t part = theirs.begin; part < theirs.end; ++part) {
        plan.copy(slot(peer, block(part)), {output(block(part))});
      }
    }
  }
  plan.cut_alike(1, seat.parts.blocks());
  return plan.take();
}

Plan rails_broadcast(uint16_t rank, const Islands& islands, uint16_t root) {
  const ChainSeat seat{rank, islands, root};
  PlanBuilder plan(Collective::Broadcast, Algorithm::Rails, rank, islands, seat.parts.blocks());
  if (rank == root) {
    send_out(plan, seat);
  } else if (seat.at_root()) {
    take_from_root(plan, seat);
  } else {
    pass_on(plan, seat);
  }
  plan.cut_alike(1, seat.parts.blocks());
  return plan.take();
}

}  // namespace rdmacoll
