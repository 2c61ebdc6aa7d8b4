// Rails, all_gather and reduce_scatter. A block belongs to a rank; on every other island one rank
// deals with it.
#include "csrc/plan/layered/channels.h"
#include "csrc/plan/layered/parts.h"
#include "csrc/plan/layered/rails.h"

namespace rdmacoll {
namespace {

// Who on an island deals with the block of a rank of another.
uint16_t partner(uint32_t rank, uint32_t island, const Islands& islands) {
  const auto members = islands.members(island);
  return members[islands.place(rank) % members.size()];
}

// The ranks of other islands that this one deals with, the next island first.
std::vector<uint16_t> wards(uint16_t rank, const Islands& islands) {
  const uint16_t island = islands.of(rank);
  std::vector<uint16_t> ranks;
  for (uint16_t other : islands_from(island, islands)) {
    const auto members = islands.members(other);
    for (size_t at = islands.place(rank); at < members.size(); at += islands.size(island)) {
      ranks.push_back(members[at]);
    }
  }
  return ranks;
}

}  // namespace

Plan rails_all_gather(uint16_t rank, const Islands& islands, uint16_t) {
  PlanBuilder plan(Collective::AllGather, Algorithm::Rails, rank, islands, islands.world());
  const bool is_alone = plan.others().empty();
  Operands destinations;
  for (uint16_t other : islands_from(islands.of(rank), islands)) {
    destinations.push_back(peer_output(partner(rank, other, islands), block(rank)));
  }
  if (!is_alone) destinations.push_back(stage(block(rank), kInputs));
  destinations.push_back(output(block(rank)));
  plan.lane();
  plan.copy(input(block(rank)), destinations);
  plan.lane();
  for (uint16_t ward : wards(rank, islands)) {
    Operands here{output(block(ward))};
    if (!is_alone) here.push_back(stage(block(ward), kRelayed));
    plan.copy(placed(ward, block(ward)), here);
  }
  plan.lane();
  for (uint16_t peer : plan.others()) {
    plan.copy(peer_stage(peer, block(peer), kInputs), {output(block(peer))});
  }
  for (uint16_t peer : plan.others()) {  // what one waits for may need another's to be taken
    plan.lane();
    for (uint16_t ward : wards(peer, islands)) {
      plan.copy(peer_stage(peer, block(ward), kRelayed), {output(block(ward))});
    }
  }
  plan.cut_alike(1, islands.world());
  return plan.take();
}

Plan rails_reduce_scatter(uint16_t rank, const Islands& islands, uint16_t) {
  PlanBuilder plan(Collective::ReduceScatter, Algorithm::Rails, rank, islands, islands.world());
  const bool is_alone = plan.others().empty();
  const BlockRange all = blocks(0, islands.world());
  // The others read several blocks, and a source of such a message could name but one.
  plan.forbid_zero_copy();
  plan.lane();
  for (uint16_t peer : plan.others()) plan.wait(Counter::Credit, peer, kInputs, all);
  for (uint16_t of = 0; of < islands.world() && !is_alone; ++of) {
    const bool folded_here =
        islands.share(of, rank) ? of == rank : partner(of, islands.of(rank), islands) == rank;
    if (!folded_here) plan.bare_copy(input(block(of)), {stage(block(of), kInputs)});
  }
  for (uint16_t peer : plan.others()) plan.signal(Counter::Data, peer, kInputs, all);
  plan.allow_zero_copy();

  const auto sum_to = [&](uint16_t of, uint16_t to) {
    const Operands sources = island_inputs(rank, islands, block(of), kInputs, of);
    plan.reduce(sources, {peer_slot(to, block(of), kSums)});
  };
  plan.lane();
  plan.hold_stages(plan.others(), kInputs, all);
  for (uint16_t ward : wards(rank, islands)) sum_to(ward, ward);
  if (!is_alone) sum_to(rank, rank);
  plan.release_stages(plan.others(), kInputs, all);

  Operands sums;
  for (uint32_t from = 0; from < islands.count(); ++from) {
    const bool here = from == islands.of(rank);
    sums.push_back(here && is_alone
                       ? input(block(rank))
                       : slot(here ? rank : partner(rank, from, islands), block(rank), kSums));
  }
  plan.lane();
  plan.finish(sums, {output(block(rank))});
  plan.cut_alike(1, islands.world());
  return plan.take();
}

}  // namespace rdmacoll
