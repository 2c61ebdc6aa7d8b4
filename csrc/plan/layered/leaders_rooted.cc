// Leaders, gather and scatter. Blocks are numbered island by island, so that all of one island are
// a range, and a message. In the root's island who takes it, or sends it, is dealt round as well.
#include "csrc/plan/layered/channels.h"
#include "csrc/plan/layered/leaders.h"
#include "csrc/plan/layered/parts.h"

namespace rdmacoll {
namespace {

constexpr uint8_t kIslands = kSums;           // slots: of all blocks of an island
constexpr uint8_t kSingle = kOrderedChannel;  // slots: of one block, inside an island

// Of an island that is not the root's: the one who holds all its blocks, and the one in the root's
// island who speaks to it.
struct Route {
  uint16_t holder;
  uint16_t at_root;
  BlockRange all;
};

struct RootedSeat {
  uint16_t rank;
  const Islands& islands;
  uint16_t root;
  uint16_t island = islands.of(rank);
  uint16_t root_island = islands.of(root);

  bool at_root() const { return island == root_island; }
  BlockRange mine() const { return block_of(rank, islands); }
  Route route(uint16_t of) const {
    return {leader(of, root_island, islands), leader(root_island, of, islands),
            blocks_of(of, islands)};
  }
  // Those that go through a rank of the root's island.
  std::vector<Route> routes_through(uint16_t at_root) const {
    std::vector<Route> routes;
    for (uint16_t of : led(at_root, islands)) routes.push_back(route(of));
    return routes;
  }
};

// --- gather --------------------------------------------------------------------------------------

// All blocks of this rank's island, as one message.
void send_island(PlanBuilder& plan, const RootedSeat& seat) {
  const Route route = seat.route(seat.island);
  const auto part = [&](BlockRange its) {
    return part_of(route.all, peer_slot(route.at_root, its, kIslands));
  };
  plan.forbid_zero_copy();  // it holds several blocks, and a source could name but one
  plan.lane();
  plan.wait(Counter::Credit, route.at_root, kIslands, route.all);
  for (uint16_t peer : plan.others()) {
    const BlockRange its = block_of(peer, seat.islands);
    plan.wait(Counter::Data, peer, kSingle, its);
    plan.bare_copy(slot(peer, its, kSingle), {part(its)});
    plan.signal(Counter::Credit, peer, kSingle, its);
  }
  plan.bare_copy(input(seat.mine()), {part(seat.mine())});
  plan.signal(Counter::Data, route.at_root, kIslands, route.all);
}

// The root's own message, or one that a rank of its island has passed on.
void take_island(PlanBuilder& plan, uint16_t from, BlockRange all) {
  plan.wait(Counter::Data, from, kIslands, all);
  for (uint32_t i = 0; i < all.count; ++i) {
    const BlockRange each = block(all.first + i);
    plan.bare_copy(part_of(all, slot(from, each, kIslands)), {output(each)});
  }
  plan.signal(Counter::Credit, from, kIslands, all);
}

void gather_at_root(PlanBuilder& plan, const RootedSeat& seat) {
  const BlockRange mine = seat.mine();
  plan.lane();
  plan.copy(input(mine), {output(mine)});
  for (const Route& route : seat.routes_through(seat.root)) {
    plan.lane();
    take_island(plan, route.holder, route.all);
  }
  for (uint16_t peer : plan.others()) {
    plan.lane();
    plan.copy(placed(peer, block_of(peer, seat.islands)), {output(block_of(peer, seat.islands))});
    plan.lane();
    for (const Route& route : seat.routes_through(peer)) take_island(plan, peer, route.all);
  }
}

// --- scatter -------------------------------------------------------------------------------------

void send_to_island(PlanBuilder& plan, const Route& route, uint16_t to) {
  plan.wait(Counter::Credit, to, kIslands, route.all);
  for (uint32_t i = 0; i < route.all.count; ++i) {
    const BlockRange each = block(route.all.first + i);
    plan.bare_copy(input(each), {part_of(route.all, peer_slot(to, each, kIslands))});
  }
  plan.signal(Counter::Data, to, kIslands, route.all);
}

void scatter_at_root(PlanBuilder& plan, const RootedSeat& seat) {
  plan.forbid_zero_copy();  // a message to an island holds several blocks
  for (const Route& route : seat.routes_through(seat.root)) {
    plan.lane();
    send_to_island(plan, route, route.holder);
  }
  for (uint16_t peer : plan.others()) {
    plan.lane();
    for (const Route& route : seat.routes_through(peer)) send_to_island(plan, route, peer);
  }
  plan.allow_zero_copy();
  for (uint16_t peer : plan.others()) {
    plan.lane();
    plan.copy(input(block_of(peer, seat.islands)),
              {peer_output(peer, block_of(peer, seat.islands))});
  }
  const BlockRange mine = seat.mine();
  plan.lane();
  plan.copy(input(mine), {output(mine)});
}

// What has come for this rank's island; its own block last.
void deal_island(PlanBuilder& plan, const RootedSeat& seat) {
  const Route route = seat.route(seat.island);
  const auto part = [&](BlockRange its) {
    return part_of(route.all, slot(route.at_root, its, kIslands));
  };
  const BlockRange mine = seat.mine();
  plan.lane();
  plan.wait(Counter::Data, route.at_root, kIslands, route.all);
  for (uint16_t peer : plan.others()) {
    const BlockRange its = block_of(peer, seat.islands);
    plan.wait(Counter::Credit, peer, kSingle, its);
    plan.bare_copy(part(its), {peer_slot(peer, its, kSingle)});
    plan.signal(Counter::Data, peer, kSingle, its);
  }
  plan.bare_copy(part(mine), {output(mine)});
  plan.signal(Counter::Credit, route.at_root, kIslands, route.all);
}

}  // namespace

Plan leaders_gather(uint16_t rank, const Islands& islands, uint16_t root) {
  const RootedSeat seat{rank, islands, root};
  PlanBuilder plan(Collective::Gather, Algorithm::Leaders, rank, islands, islands.world());
  plan.number_blocks_by(islands);
  if (rank == root) {
    gather_at_root(plan, seat);
  } else if (seat.at_root()) {
    plan.lane();
    plan.copy(input(seat.mine()), {peer_output(root, seat.mine())});
    plan.lane();
    for (const Route& route : seat.routes_through(rank)) {
      plan.copy(slot(route.holder, route.all, kIslands), {peer_slot(root, route.all, kIslands)});
    }
  } else if (const uint16_t holder = seat.route(seat.island).holder; holder != rank) {
    plan.lane();
    plan.copy(input(seat.mine()), {peer_slot(holder, seat.mine(), kSingle)});
  } else {
    send_island(plan, seat);
  }
  plan.cut_alike(islands.largest(), 0);
  return plan.take();
}

Plan leaders_scatter(uint16_t rank, const Islands& islands, uint16_t root) {
  const RootedSeat seat{rank, islands, root};
  PlanBuilder plan(Collective::Scatter, Algorithm::Leaders, rank, islands, islands.world());
  plan.number_blocks_by(islands);
  if (rank == root) {
    scatter_at_root(plan, seat);
  } else if (seat.at_root()) {
    plan.lane();
    plan.copy(placed(root, seat.mine()), {output(seat.mine())});
    plan.lane();
    for (const Route& route : seat.routes_through(rank)) {
      plan.copy(slot(root, route.all, kIslands), {peer_slot(route.holder, route.all, kIslands)});
    }
  } else if (const uint16_t holder = seat.route(seat.island).holder; holder != rank) {
    plan.lane();
    plan.copy(slot(holder, seat.mine(), kSingle), {output(seat.mine())});
  } else {
    deal_island(plan, seat);
  }
  plan.cut_alike(islands.largest(), 0);
  return plan.take();
}

}  // namespace rdmacoll
