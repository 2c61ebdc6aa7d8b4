// Leaders, all_gather and reduce_scatter. Blocks are numbered island by island, so that all of one
// island are a range, and a message.
#include "csrc/plan/layered/channels.h"
#include "csrc/plan/layered/leaders.h"
#include "csrc/plan/layered/parts.h"

namespace rdmacoll {
namespace {

// A message from another island, which the others of this one are shown.
void take_message(PlanBuilder& plan, uint16_t from, BlockRange message) {
  plan.wait(Counter::Data, from, kSums, message);
  for (uint16_t peer : plan.others()) plan.wait(Counter::Credit, peer, kRelayed, message);
}
void relay_message(PlanBuilder& plan, uint16_t from, BlockRange message) {
  for (uint16_t peer : plan.others()) plan.signal(Counter::Data, peer, kRelayed, message);
  plan.signal(Counter::Credit, from, kSums, message);
}

// The blocks of this rank's island: the others' to its output, and all to those that it leads.
void gather_island(PlanBuilder& plan, uint16_t rank, const Islands& islands) {
  const uint16_t island = islands.of(rank);
  const BlockRange ours = blocks_of(island, islands), mine = block_of(rank, islands);
  const std::vector<uint16_t> speaks_to = led(rank, islands);
  const auto parts = [&](BlockRange its) {
    Operands destinations;
    for (uint16_t other : speaks_to) {
      destinations.push_back(part_of(ours, peer_slot(leader(other, island, islands), its, kSums)));
    }
    return destinations;
  };
  plan.lane();
  for (uint16_t other : speaks_to) {
    plan.wait(Counter::Credit, leader(other, island, islands), kSums, ours);
  }
  for (uint16_t peer : plan.others()) {
    const BlockRange its = block_of(peer, islands);
    Operands destinations = parts(its);
    destinations.push_back(output(its));
    plan.wait(Counter::Data, peer, kInputs, its);
    plan.bare_copy(peer_stage(peer, its, kInputs), destinations);
    plan.signal(Counter::Credit, peer, kInputs, its);
  }
  if (!speaks_to.empty()) plan.bare_copy(input(mine), parts(mine));
  for (uint16_t other : speaks_to) {
    plan.signal(Counter::Data, leader(other, island, islands), kSums, ours);
  }
}

// The inputs of which others make sums.
void show_inputs(PlanBuilder& plan, uint16_t rank, const Islands& islands) {
  const BlockRange all = blocks(0, islands.world());
  plan.lane();
  for (uint16_t peer : plan.others()) plan.wait(Counter::Credit, peer, kInputs, all);
  for (uint32_t of = 0; of < islands.count(); ++of) {
    const bool here = of == islands.of(rank);
    if (!here && leader(islands.of(rank), of, islands) == rank) continue;
    for (uint16_t member : islands.members(of)) {
      const BlockRange its = block_of(member, islands);
      if (member != rank) plan.bare_copy(input(its), {stage(its, kInputs)});
    }
  }
  for (uint16_t peer : plan.others()) plan.signal(Counter::Data, peer, kInputs, all);
}

// The sums of this rank's island for those that it leads, and for itself.
void sum_up_blocks(PlanBuilder& plan, uint16_t rank, const Islands& islands) {
  const uint16_t island = islands.of(rank);
  const BlockRange all = blocks(0, islands.world());
  const auto inputs_of = [&](BlockRange its) {
    return island_inputs(rank, islands, its, kInputs, its.first);
  };
  plan.lane();
  plan.hold_stages(plan.others(), kInputs, all);
  for (uint16_t other : led(rank, islands)) {
    const uint16_t to = leader(other, island, islands);
    const BlockRange theirs = blocks_of(other, islands);
    plan.wait(Counter::Credit, to, kSums, theirs);
    for (uint16_t member : islands.members(other)) {
      const BlockRange its = block_of(member, islands);
      plan.bare_reduce(inputs_of(its), {part_of(theirs, peer_slot(to, its, kSums))});
    }
    plan.signal(Counter::Data, to, kSums, theirs);
  }
  const BlockRange mine = block_of(rank, islands);
  plan.reduce(inputs_of(mine), {peer_slot(rank, mine, kSums)});
  plan.release_stages(plan.others(), kInputs, all);
}

// The sums that this rank takes from other islands, in their order. Its own block it hands to
// itself.
void show_sums(PlanBuilder& plan, uint16_t rank, const Islands& islands) {
  const uint16_t island = islands.of(rank);
  const BlockRange ours = blocks_of(island, islands), mine = block_of(rank, islands);
  plan.lane();
  for (uint32_t of = 0; of < islands.count(); ++of) {
    if (of == island || leader(island, of, islands) != rank) continue;
    const uint16_t from = leader(of, island, islands);
    take_message(plan, from, ours);
    plan.wait(Counter::Credit, rank, kOrderedChannel, mine);
    plan.bare_copy(part_of(ours, slot(from, mine, kSums)),
                   {peer_slot(rank, mine, kOrderedChannel)});
    for (uint16_t peer : plan.others()) {
      const BlockRange its = block_of(peer, islands);
      plan.bare_copy(part_of(ours, slot(from, its, kSums)), {stage(its, kRelayed)});
    }
    relay_message(plan, from, ours);
    plan.signal(Counter::Data, rank, kOrderedChannel, mine);
  }
}

// A sum of this rank's block, and the message that it comes in.
struct Sum {
  Operand at;
  BlockRange message;
};

Sum sum_of_block(uint32_t of, uint16_t rank, const Islands& islands) {
  const uint16_t island = islands.of(rank);
  const uint16_t taker = leader(island, of, islands);
  const BlockRange mine = block_of(rank, islands);
  if (of == island) return {slot(rank, mine, kSums), mine};
  if (islands.size(island) == 1) return {slot(leader(of, island, islands), mine, kSums), mine};
  if (taker == rank) return {slot(rank, mine, kOrderedChannel), mine};
  return {peer_stage(taker, mine, kRelayed), blocks_of(island, islands)};
}

// The islands' sums one behind the other, in their order: of those that one rank shows, one can be
// read at a time. The own one is there first, and then the input has been read: the output may be
// the same memory.
void fold_block(PlanBuilder& plan, uint16_t rank, const Islands& islands) {
  const BlockRange mine = block_of(rank, islands);
  plan.lane();
  plan.wait(Counter::Data, rank, kSums, mine);
  const auto take = [&](uint32_t of) {
    const Sum sum = sum_of_block(of, rank, islands);
    if (of != islands.of(rank)) {
      plan.wait(Counter::Data, sum.at.rank, sum.at.channel, sum.message);
    }
    return sum;
  };
  const auto give_back = [&](const Sum& sum) {
    plan.signal(Counter::Credit, sum.at.rank, sum.at.channel, sum.message);
  };
  const Sum first = take(0);
  for (uint32_t of = 1; of < islands.count(); ++of) {
    const Sum sum = take(of);
    const Operands sums{of == 1 ? first.at : output(mine), sum.at};
    if (of + 1 == islands.count()) {
      plan.bare_finish(sums, {output(mine)});
    } else {
      plan.bare_reduce(sums, {output(mine)});
    }
    if (of == 1) give_back(first);
    give_back(sum);
  }
}

}  // namespace

Plan leaders_all_gather(uint16_t rank, const Islands& islands, uint16_t) {
  PlanBuilder plan(Collective::AllGather, Algorithm::Leaders, rank, islands, islands.world());
  plan.number_blocks_by(islands);
  const uint16_t island = islands.of(rank);
  const BlockRange mine = block_of(rank, islands);
  Operands own;
  if (!plan.others().empty()) own.push_back(stage(mine, kInputs));
  own.push_back(output(mine));
  plan.lane();
  plan.copy(input(mine), own);
  plan.forbid_zero_copy();  // what follows holds several blocks, and a source could name but one
  gather_island(plan, rank, islands);
  plan.lane();
  for (uint16_t other : led(rank, islands)) {
    const uint16_t from = leader(other, island, islands);
    const BlockRange theirs = blocks_of(other, islands);
    take_message(plan, from, theirs);
    for (uint16_t member : islands.members(other)) {
      const BlockRange its = block_of(member, islands);
      Operands here{output(its)};
      if (!plan.others().empty()) here.push_back(stage(its, kRelayed));
      plan.bare_copy(part_of(theirs, slot(from, its, kSums)), here);
    }
    relay_message(plan, from, theirs);
  }
  for (uint16_t peer : plan.others()) {  // what one waits for may need another's to be taken
    plan.lane();
    for (uint16_t other : led(peer, islands)) {
      const BlockRange theirs = blocks_of(other, islands);
      plan.hold_stages({peer}, kRelayed, theirs);
      for (uint16_t member : islands.members(other)) {
        const BlockRange its = block_of(member, islands);
        plan.bare_copy(peer_stage(peer, its, kRelayed), {output(its)});
      }
      plan.release_stages({peer}, kRelayed, theirs);
    }
  }
  plan.cut_alike(islands.largest(), islands.world());
  return plan.take();
}

Plan leaders_reduce_scatter(uint16_t rank, const Islands& islands, uint16_t) {
  PlanBuilder plan(Collective::ReduceScatter, Algorithm::Leaders, rank, islands, islands.world());
  plan.number_blocks_by(islands);
  plan.forbid_zero_copy();  // in place, the result may come before the last has read the input
  const bool is_alone = plan.others().empty();
  if (!is_alone) show_inputs(plan, rank, islands);
  sum_up_blocks(plan, rank, islands);
  if (!is_alone) show_sums(plan, rank, islands);
  fold_block(plan, rank, islands);
  plan.cut_alike(islands.largest(), islands.world());
  return plan.take();
}

}  // namespace rdmacoll
