// Tree: sums go up on a channel of their own, results down on the one on which they may be placed.
#include "csrc/plan/algorithms/tree.h"

#include "csrc/plan/builder.h"

namespace rdmacoll {
namespace {

constexpr uint8_t kUp = 1;
static_assert(kUp != kOrderedChannel);

// A rank's place. Counted from the root, the parent of v is v without its lowest bit, and its
// children add a lower one.
struct Place {
  bool is_root = false;
  uint16_t parent = 0;
  std::vector<uint16_t> children;  // the smallest subtree first
};

Place place_of(uint16_t rank, uint16_t world, uint16_t root) {
  const uint32_t from_root = around(rank, -root, world);
  Place place;
  place.is_root = from_root == 0;
  place.parent = around(from_root & (from_root - 1), root, world);
  for (uint32_t bit = 1; bit < world && (from_root & bit) == 0; bit <<= 1) {
    if (from_root + bit < world) place.children.push_back(around(from_root + bit, root, world));
  }
  return place;
}

Operands contributions(const Place& place) {
  Operands sources{input(block(0))};
  for (uint16_t child : place.children) sources.push_back(slot(child, block(0), kUp));
  return sources;
}

// The largest subtree first: it takes longest.
Operands to_children(const Place& place) {
  Operands destinations;
  for (auto child = place.children.rbegin(); child != place.children.rend(); ++child) {
    destinations.push_back(peer_output(*child, block(0)));
  }
  return destinations;
}

Operands to_output_and_children(const Place& place) {
  Operands destinations = to_children(place);
  destinations.push_back(output(block(0)));
  return destinations;
}

void send_up(PlanBuilder& plan, const Place& place) {
  const Operand up = peer_slot(place.parent, block(0), kUp);
  if (place.children.empty()) {
    plan.copy(input(block(0)), {up});
  } else {
    plan.reduce(contributions(place), {up});
  }
}

void pass_down(PlanBuilder& plan, const Place& place) {
  plan.copy(placed(place.parent, block(0)), to_output_and_children(place));
}

}  // namespace

Plan tree_all_reduce(uint16_t rank, uint16_t world) {
  const Place place = place_of(rank, world, 0);
  PlanBuilder plan(Collective::AllReduce, Algorithm::Tree, rank, world, 1);
  plan.lane();
  if (place.is_root) {
    plan.finish(contributions(place), to_output_and_children(place));
    return plan.take();
  }
  send_up(plan, place);
  plan.lane();
  pass_down(plan, place);
  return plan.take();
}

Plan tree_reduce(uint16_t rank, uint16_t world, uint16_t root) {
  const Place place = place_of(rank, world, root);
  PlanBuilder plan(Collective::Reduce, Algorithm::Tree, rank, world, 1);
  plan.lane();
  if (place.is_root) {
    plan.finish(contributions(place), {output(block(0))});
  } else {
    send_up(plan, place);
  }
  return plan.take();
}

Plan tree_broadcast(uint16_t rank, uint16_t world, uint16_t root) {
  const Place place = place_of(rank, world, root);
  PlanBuilder plan(Collective::Broadcast, Algorithm::Tree, rank, world, 1);
  plan.lane();
  if (place.is_root) {
    plan.copy(input(block(0)), to_children(place));
  } else {
    pass_down(plan, place);
  }
  return plan.take();
}

}  // namespace rdmacoll
