// Recursive halving and doubling: one lane, channel 0.
#include "csrc/plan/algorithms/halving_doubling.h"

#include <bit>

#include "csrc/plan/builder.h"

namespace rdmacoll {
namespace {

// Of the first 2 * extra ranks the even ones hand over to the odd ones; the others take part as
// they are.
struct Fold {
  uint16_t participants;
  uint16_t extra;

  explicit Fold(uint16_t world)
      : participants(std::bit_floor(world)), extra(world - participants) {}
  bool in_pair(uint16_t rank) const { return rank < 2 * extra; }
  bool stands_aside(uint16_t rank) const { return in_pair(rank) && rank % 2 == 0; }
  uint16_t index_of(uint16_t rank) const { return in_pair(rank) ? rank / 2 : rank - extra; }
  uint16_t rank_of(uint16_t index) const { return index < extra ? 2 * index + 1 : index + extra; }
};

BlockRange lower_half(BlockRange range) { return blocks(range.first, range.count / 2); }
BlockRange upper_half(BlockRange range) {
  return blocks(range.first + range.count / 2, range.count / 2);
}

void stand_aside(PlanBuilder& plan, uint16_t partner, BlockRange all) {
  const BlockRange halves[] = {lower_half(all), upper_half(all)};
  for (BlockRange half : halves) plan.copy(input(half), {peer_slot(partner, half)});
  for (BlockRange half : halves) plan.copy(placed(partner, half), {output(half)});
}

// Sends the half that the partner keeps, folds the other; returns the block that is left. Sums are
// ordered by index, so that partners agree.
BlockRange halve(PlanBuilder& plan, const Fold& fold, uint16_t index, BlockRange range,
                 bool sums_in_output) {
  for (uint16_t bit = fold.participants / 2; bit != 0; bit /= 2) {
    const uint16_t partner = fold.rank_of(index ^ bit);
    const bool lower = (index & bit) == 0;
    const BlockRange kept = lower ? lower_half(range) : upper_half(range);
    const BlockRange sent = lower ? upper_half(range) : lower_half(range);
    const auto sums = sums_in_output ? output : input;
    plan.copy(sums(sent), {peer_slot(partner, sent)});
    Operands sources{sums(kept), slot(partner, kept)};
    if (!lower) std::swap(sources[0], sources[1]);
    if (bit == 1) {
      plan.finish(sources, {output(kept)});
    } else {
      plan.reduce(sources, {output(kept)});
    }
    range = kept;
    sums_in_output = true;
  }
  return range;
}

// The way back: the range doubles with the partner's.
void double_up(PlanBuilder& plan, const Fold& fold, uint16_t index, BlockRange range) {
  for (uint16_t bit = 1; bit < fold.participants; bit *= 2) {
    const uint16_t partner = fold.rank_of(index ^ bit);
    const BlockRange theirs = blocks(range.first ^ bit, bit);
    plan.copy(output(range), {peer_output(partner, range)});
    plan.copy(placed(partner, theirs), {output(theirs)});
    range = blocks(std::min(range.first, theirs.first), 2 * bit);
  }
}

}  // namespace

Plan halving_doubling_all_reduce(uint16_t rank, uint16_t world) {
  const Fold fold(world);
  const BlockRange all = blocks(0, fold.participants);
  PlanBuilder plan(Collective::AllReduce, Algorithm::HalvingDoubling, rank, world, all.count);
  plan.lane();
  if (fold.stands_aside(rank)) {
    stand_aside(plan, rank + 1, all);
    return plan.take();
  }
  const BlockRange halves[] = {lower_half(all), upper_half(all)};
  const bool stands_in = fold.in_pair(rank);
  if (stands_in) {
    for (BlockRange half : halves) {
      plan.reduce({slot(rank - 1, half), input(half)}, {output(half)});
    }
  }
  const uint16_t index = fold.index_of(rank);
  const BlockRange kept = halve(plan, fold, index, all, stands_in);
  double_up(plan, fold, index, kept);
  if (stands_in) {
    for (BlockRange half : halves) plan.copy(output(half), {peer_output(rank - 1, half)});
  }
  return plan.take();
}

}  // namespace rdmacoll
