// Rails, all_gather and reduce_scatter. A block belongs to a rank; on every other island one rank
// deals with it. Floor: plan/layered.
#include <algorithm>

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

// Blocks are published group by group, those of a group as one message. The own group comes first,
// so that not all islands send to the same ranks at a time.
struct Groups {
  uint32_t world;
  uint32_t each;
  uint32_t own;  // of the first rank of this island

  uint32_t count() const { return (world + each - 1) / each; }
  BlockRange at(uint32_t i) const {
    const uint32_t first = (own + i) % count() * each;
    return blocks(first, std::min(each, world - first));
  }
};

bool is_in(BlockRange range, uint32_t block) {
  return block >= range.first && block < range.first + range.count;
}

void publish_blocks(PlanBuilder& plan, uint16_t rank, const Islands& islands,
                    const Groups& groups) {
  // The others read several blocks, and a source of such a message could name but one.
  plan.forbid_zero_copy();
  plan.lane();
  for (uint32_t i = 0; i < groups.count() && !plan.others().empty(); ++i) {
    const BlockRange group = groups.at(i);
    for (uint16_t peer : plan.others()) plan.wait(Counter::Credit, peer, kInputs, group);
    for (uint32_t of = group.first; is_in(group, of); ++of) {
      const bool folded_here =
          islands.share(of, rank) ? of == rank : partner(of, islands.of(rank), islands) == rank;
      if (!folded_here) plan.bare_copy(input(block(of)), {stage(block(of), kInputs)});
    }
    for (uint16_t peer : plan.others()) plan.signal(Counter::Data, peer, kInputs, group);
  }
  plan.allow_zero_copy();
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
  // Every stage message holds one block.
  plan.cut_alike(1, std::min(islands.world(), kStageBlocks));
  return plan.take();
}

Plan rails_reduce_scatter_in_groups(uint16_t rank, const Islands& islands, uint32_t stage_blocks) {
  const uint32_t world = islands.world();
  PlanBuilder plan(Collective::ReduceScatter, Algorithm::Rails, rank, islands, world);
  const bool is_alone = plan.others().empty();
  const uint32_t each = std::min(stage_blocks, world);
  const Groups groups{world, each, islands.members(islands.of(rank)).front() / each};
  publish_blocks(plan, rank, islands, groups);

  const auto sum_to = [&](uint16_t of, uint16_t to) {
    const Operands sources = island_inputs(rank, islands, block(of), kInputs, of);
    plan.reduce(sources, {peer_slot(to, block(of), kSums)});
  };
  plan.lane();
  for (uint32_t i = 0; i < groups.count(); ++i) {
    const BlockRange group = groups.at(i);
    plan.hold_stages(plan.others(), kInputs, group);
    for (uint16_t ward : wards(rank, islands)) {
      if (is_in(group, ward)) sum_to(ward, ward);
    }
    if (!is_alone && is_in(group, rank)) sum_to(rank, rank);
    plan.release_stages(plan.others(), kInputs, group);
  }

  Operands sums;
  for (uint32_t from = 0; from < islands.count(); ++from) {
    const bool here = from == islands.of(rank);
    sums.push_back(here && is_alone
                       ? input(block(rank))
                       : slot(here ? rank : partner(rank, from, islands), block(rank), kSums));
  }
  plan.lane();
  plan.finish(sums, {output(block(rank))});
  plan.cut_alike(1, each);
  return plan.take();
}

Plan rails_reduce_scatter(uint16_t rank, const Islands& islands, uint16_t) {
  return rails_reduce_scatter_in_groups(rank, islands, kStageBlocks);
}

}  // namespace rdmacoll
