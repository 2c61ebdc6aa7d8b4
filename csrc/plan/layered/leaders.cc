// Leaders: one block.
#include "csrc/plan/layered/leaders.h"

#include "csrc/plan/layered/channels.h"
#include "csrc/plan/layered/parts.h"

namespace rdmacoll {
namespace {

const BlockRange kAll = block(0);

// The island's inputs to its sum, which goes to all that it is for. The last is this rank itself.
void sum_up(PlanBuilder& plan, uint16_t rank, const Islands& islands) {
  const uint16_t island = islands.of(rank);
  Operands destinations;
  for (uint16_t other : islands_from(island, islands)) {
    if (leader(island, other, islands) != rank) continue;
    destinations.push_back(peer_slot(leader(other, island, islands), kAll, kSums));
  }
  destinations.push_back(peer_slot(rank, kAll, kSums));
  plan.lane();
  if (plan.others().empty()) {
    plan.copy(input(kAll), destinations);
    return;
  }
  plan.copy(input(kAll), {stage(kAll, kInputs)});
  plan.hold_stages(plan.others(), kInputs, kAll);
  plan.reduce(island_inputs(rank, islands, kAll, kInputs, 0), destinations);
  plan.release_stages(plan.others(), kInputs, kAll);
}

// What this rank takes from other islands it shows to the others, and to itself in a slot of its
// own.
void show(PlanBuilder& plan, uint16_t rank, const Islands& islands) {
  const uint16_t island = islands.of(rank);
  plan.lane();
  for (uint32_t from = 0; from < islands.count(); ++from) {
    if (from == island || leader(island, from, islands) != rank) continue;
    plan.copy(slot(leader(from, island, islands), kAll, kSums),
              {stage(kAll, kRelayed), peer_slot(rank, kAll, kOrderedChannel)});
  }
}

// Where a rank finds the sum of an island.
Operand sum_of(uint32_t of, uint16_t rank, const Islands& islands) {
  const uint16_t island = islands.of(rank);
  const uint16_t taker = leader(island, of, islands);
  if (of == island) return slot(rank, kAll, kSums);
  if (islands.size(island) == 1) return slot(leader(of, island, islands), kAll, kSums);
  return taker == rank ? slot(rank, kAll, kOrderedChannel) : peer_stage(taker, kAll, kRelayed);
}

// The islands' sums one behind the other, in their order. The own one is there first, and then the
// input has been read: the output may be the same memory.
void fold_sums(PlanBuilder& plan, uint16_t rank, const Islands& islands) {
  plan.lane();
  plan.wait(Counter::Data, rank, kSums, kAll);
  const auto take = [&](uint32_t of) {
    const Operand sum = sum_of(of, rank, islands);
    if (of != islands.of(rank)) plan.wait(Counter::Data, sum.rank, sum.channel, kAll);
    return sum;
  };
  const auto give_back = [&](const Operand& sum) {
    plan.signal(Counter::Credit, sum.rank, sum.channel, kAll);
  };
  const Operand first = take(0);
  for (uint32_t of = 1; of < islands.count(); ++of) {
    const Operand sum = take(of);
    const Operands sums{of == 1 ? first : output(kAll), sum};
    if (of + 1 == islands.count()) {
      plan.bare_finish(sums, {output(kAll)});
    } else {
      plan.bare_reduce(sums, {output(kAll)});
    }
    if (of == 1) give_back(first);
    give_back(sum);
  }
}

void send_token(PlanBuilder& plan, uint16_t to) {
  plan.wait(Counter::Credit, to, kOrderedChannel, kToken);
  plan.signal(Counter::Data, to, kOrderedChannel, kToken);
}

void take_token(PlanBuilder& plan, uint16_t from) {
  plan.wait(Counter::Data, from, kOrderedChannel, kToken);
  plan.signal(Counter::Credit, from, kOrderedChannel, kToken);
}

}  // namespace

Plan leaders_all_reduce(uint16_t rank, const Islands& islands, uint16_t) {
  PlanBuilder plan(Collective::AllReduce, Algorithm::Leaders, rank, islands, 1);
  plan.forbid_zero_copy();  // in place, the result may come before the last has read the input
  sum_up(plan, rank, islands);
  if (!plan.others().empty()) show(plan, rank, islands);
  fold_sums(plan, rank, islands);
  plan.cut_alike(1, 1);
  return plan.take();
}

Plan leaders_reduce(uint16_t rank, const Islands& islands, uint16_t root) {
  PlanBuilder plan(Collective::Reduce, Algorithm::Leaders, rank, islands, 1);
  const uint16_t island = islands.of(rank), at_root = islands.of(root);
  const auto sums_up = [&](uint32_t of) {
    return of == at_root ? root : leader(of, at_root, islands);
  };
  plan.lane();
  if (sums_up(island) != rank) {
    plan.copy(input(kAll), {peer_slot(sums_up(island), kAll)});
    return plan.take();
  }
  Operands inside;
  for (uint16_t member : islands.members(island)) {
    inside.push_back(member == rank ? input(kAll) : slot(member, kAll));
  }
  const bool is_alone = inside.size() == 1;
  if (rank != root) {
    plan.reduce(inside, {peer_slot(root, kAll, kSums)});
    return plan.take();
  }
  if (!is_alone) plan.reduce(inside, {output(kAll)});
  Operands sums;
  for (uint32_t from = 0; from < islands.count(); ++from) {
    const Operand own = is_alone ? input(kAll) : output(kAll);
    sums.push_back(from == island ? own : slot(sums_up(from), kAll, kSums));
  }
  plan.finish(sums, {output(kAll)});
  return plan.take();
}

Plan leaders_broadcast(uint16_t rank, const Islands& islands, uint16_t root) {
  PlanBuilder plan(Collective::Broadcast, Algorithm::Leaders, rank, islands, 1);
  const uint16_t island = islands.of(rank), at_root = islands.of(root);
  const bool is_alone = plan.others().empty();
  plan.lane();
  if (rank == root) {
    Operands destinations;
    for (uint16_t other : islands_from(island, islands)) {
      destinations.push_back(peer_output(leader(other, island, islands), kAll));
    }
    if (!is_alone) destinations.push_back(stage(kAll, kInputs));
    plan.copy(input(kAll), destinations);
  } else if (island == at_root) {
    plan.copy(peer_stage(root, kAll, kInputs), {output(kAll)});
  } else if (leader(island, at_root, islands) == rank) {
    Operands destinations{output(kAll)};
    if (!is_alone) destinations.push_back(stage(kAll, kRelayed));
    plan.copy(placed(root, kAll), destinations);
  } else {
    plan.copy(peer_stage(leader(island, at_root, islands), kAll, kRelayed), {output(kAll)});
  }
  plan.cut_alike(1, 1);
  return plan.take();
}

Plan leaders_barrier(uint16_t rank, const Islands& islands, uint16_t) {
  PlanBuilder plan(Collective::Barrier, Algorithm::Leaders, rank, islands, 1);
  const uint16_t island = islands.of(rank);
  const auto members = islands.members(island);
  plan.lane();
  if (rank != members.front()) {
    send_token(plan, members.front());
    take_token(plan, members.front());
    return plan.take();
  }
  for (uint16_t peer : plan.others()) take_token(plan, peer);
  const auto count = static_cast<int>(islands.count());
  for (int distance = 1; distance < count; distance *= 2) {
    send_token(plan, islands.members(around(island, distance, count)).front());
    take_token(plan, islands.members(around(island, -distance, count)).front());
  }
  for (uint16_t peer : plan.others()) send_token(plan, peer);
  return plan.take();
}

}  // namespace rdmacoll
