// Leaders, all_to_all. A message across the network is a bundle: of ranks of one island all blocks
// for those of another. The whole island's are one bundle, unless a slot cannot hold so many.
#include <algorithm>
#include <span>

#include "csrc/plan/layered/channels.h"
#include "csrc/plan/layered/leaders.h"
#include "csrc/plan/layered/parts.h"

namespace rdmacoll {
namespace {

constexpr uint8_t kBundles = kSums;
constexpr uint8_t kDealt = kOrderedChannel;  // slots: of a bundle what one rank gets

// Where its blocks lie: destination by destination, and of each by source.
struct Bundle {
  uint16_t sender;
  uint16_t taker;
  std::span<const uint16_t> sources;
  std::span<const uint16_t> destinations;
  uint32_t first;  // block

  BlockRange all() const {
    return blocks(first, static_cast<uint32_t>(sources.size() * destinations.size()));
  }
  BlockRange for_destination(size_t at) const {
    const auto each = static_cast<uint32_t>(sources.size());
    return blocks(first + static_cast<uint32_t>(at) * each, each);
  }
  BlockRange of(size_t destination, size_t source) const {
    return block(for_destination(destination).first + static_cast<uint32_t>(source));
  }
};

struct ExchangeSeat {
  uint16_t rank;
  const Islands& islands;
  uint32_t world = islands.world();
  uint16_t island = islands.of(rank);

  BlockRange for_rank(uint16_t to) const { return block(to); }
  BlockRange from_rank(uint16_t from) const { return block(world + from); }
  BlockRange all_inputs() const { return blocks(0, world); }

  uint32_t bundles(uint32_t from, uint32_t to) const {
    const uint32_t most = kSlotBlocksMax / islands.size(to);
    return (islands.size(from) + most - 1) / most;
  }
  uint32_t sources_each(uint32_t from, uint32_t to) const {
    const uint32_t count = bundles(from, to);
    return (islands.size(from) + count - 1) / count;
  }
  // Islands that lie between: what an island sends is dealt out in this order, and behind it what
  // it takes, so that a rank has both only where there are more bundles than ranks.
  uint32_t between(uint32_t one, uint32_t other) const {
    return (other + islands.count() - one - 1) % islands.count();
  }
  Bundle bundle(uint32_t from, uint32_t to, uint32_t index) const {
    const uint32_t count = bundles(from, to), each = sources_each(from, to);
    const uint32_t sent = between(from, to), taken = islands.count() - 1 + between(to, from);
    const auto members = islands.members(from).subspan(index * each);
    return {leader(from, sent * count + index, islands), leader(to, taken * count + index, islands),
            members.first(std::min<size_t>(each, members.size())), islands.members(to), 2 * world};
  }
  // What of a rank of this island's input goes to another one.
  Bundle bundle_with_mine(uint32_t to) const {
    return bundle(island, to, islands.place(rank) / sources_each(island, to));
  }

  template <typename Use>
  void each_sent_by(uint16_t sender, const Use& use) const {
    for (uint16_t to : islands_from(islands.of(sender), islands)) {
      for (uint32_t index = 0; index < bundles(islands.of(sender), to); ++index) {
        const Bundle each = bundle(islands.of(sender), to, index);
        if (each.sender == sender) use(each);
      }
    }
  }
  template <typename Use>
  void each_taken_by(uint16_t taker, const Use& use) const {
    for (uint16_t from : islands_before(islands.of(taker), islands)) {
      for (uint32_t index = 0; index < bundles(from, islands.of(taker)); ++index) {
        const Bundle each = bundle(from, islands.of(taker), index);
        if (each.taker == taker) use(each);
      }
    }
  }
};

// No bundle has more blocks.
uint32_t most_blocks(const Islands& islands) {
  uint32_t largest = 0, next = 0;
  for (uint32_t island = 0; island < islands.count(); ++island) {
    const uint32_t size = islands.size(island);
    next = std::max(next, std::min(largest, size));
    largest = std::max(largest, size);
  }
  return std::min(largest * next, kSlotBlocksMax);
}

// What others of this island take, for themselves or into bundles that they send.
void show_inputs(PlanBuilder& plan, const ExchangeSeat& seat) {
  plan.lane();
  for (uint16_t peer : plan.others()) plan.wait(Counter::Credit, peer, kInputs, seat.all_inputs());
  for (uint32_t to = 0; to < seat.islands.count(); ++to) {
    if (to != seat.island && seat.bundle_with_mine(to).sender == seat.rank) continue;
    for (uint16_t member : seat.islands.members(to)) {
      const BlockRange its = seat.for_rank(member);
      if (member != seat.rank) plan.bare_copy(input(its), {stage(its, kInputs)});
    }
  }
  for (uint16_t peer : plan.others()) plan.signal(Counter::Data, peer, kInputs, seat.all_inputs());
}

void send_bundle(PlanBuilder& plan, const ExchangeSeat& seat, const Bundle& bundle) {
  plan.wait(Counter::Credit, bundle.taker, kBundles, bundle.all());
  for (size_t to = 0; to < bundle.destinations.size(); ++to) {
    const BlockRange its = seat.for_rank(bundle.destinations[to]);
    for (size_t from = 0; from < bundle.sources.size(); ++from) {
      const uint16_t source = bundle.sources[from];
      plan.bare_copy(
          source == seat.rank ? input(its) : peer_stage(source, its, kInputs),
          {part_of(bundle.all(), peer_slot(bundle.taker, bundle.of(to, from), kBundles))});
    }
  }
  plan.signal(Counter::Data, bundle.taker, kBundles, bundle.all());
}

// The bundles first: they have the longer way.
void read_inputs(PlanBuilder& plan, const ExchangeSeat& seat) {
  plan.lane();
  plan.hold_stages(plan.others(), kInputs, seat.all_inputs());
  seat.each_sent_by(seat.rank, [&](const Bundle& each) { send_bundle(plan, seat, each); });
  for (size_t left = plan.others().size(); left > 0; --left) {
    const uint16_t peer = plan.others()[left - 1];
    plan.bare_copy(peer_stage(peer, seat.for_rank(seat.rank), kInputs),
                   {output(seat.from_rank(peer))});
  }
  plan.release_stages(plan.others(), kInputs, seat.all_inputs());
  plan.lane();
  plan.copy(input(seat.for_rank(seat.rank)), {output(seat.from_rank(seat.rank))});
}

// What of a bundle this rank gets, out of the message that brings it.
void take_mine(PlanBuilder& plan, const ExchangeSeat& seat, const Bundle& bundle,
               BlockRange message, uint16_t from, uint8_t channel) {
  const size_t me = seat.islands.place(seat.rank);
  for (size_t source = 0; source < bundle.sources.size(); ++source) {
    plan.bare_copy(part_of(message, slot(from, bundle.of(me, source), channel)),
                   {output(seat.from_rank(bundle.sources[source]))});
  }
}

void deal_bundle(PlanBuilder& plan, const ExchangeSeat& seat, const Bundle& bundle) {
  plan.wait(Counter::Data, bundle.sender, kBundles, bundle.all());
  for (size_t to = 0; to < bundle.destinations.size(); ++to) {
    const uint16_t peer = bundle.destinations[to];
    const BlockRange its = bundle.for_destination(to);
    if (peer == seat.rank) continue;
    plan.wait(Counter::Credit, peer, kDealt, its);
    plan.bare_copy(part_of(bundle.all(), slot(bundle.sender, its, kBundles)),
                   {peer_slot(peer, its, kDealt)});
    plan.signal(Counter::Data, peer, kDealt, its);
  }
  take_mine(plan, seat, bundle, bundle.all(), bundle.sender, kBundles);
  plan.signal(Counter::Credit, bundle.sender, kBundles, bundle.all());
}

void take_dealt(PlanBuilder& plan, const ExchangeSeat& seat, const Bundle& bundle) {
  const BlockRange mine = bundle.for_destination(seat.islands.place(seat.rank));
  plan.wait(Counter::Data, bundle.taker, kDealt, mine);
  take_mine(plan, seat, bundle, mine, bundle.taker, kDealt);
  plan.signal(Counter::Credit, bundle.taker, kDealt, mine);
}

}  // namespace

Plan leaders_all_to_all(uint16_t rank, const Islands& islands, uint16_t) {
  const ExchangeSeat seat{rank, islands};
  const uint32_t most = most_blocks(islands);
  PlanBuilder plan(Collective::AllToAll, Algorithm::Leaders, rank, islands, 2 * seat.world + most);
  plan.forbid_zero_copy();  // messages hold several blocks, and a source could name but one
  if (!plan.others().empty()) show_inputs(plan, seat);
  read_inputs(plan, seat);
  plan.lane();
  seat.each_taken_by(rank, [&](const Bundle& each) { deal_bundle(plan, seat, each); });
  for (uint16_t peer : plan.others()) {  // what one waits for may need another's to be taken
    plan.lane();
    seat.each_taken_by(peer, [&](const Bundle& each) { take_dealt(plan, seat, each); });
  }
  plan.cut_alike(most, seat.world);
  return plan.take();
}

}  // namespace rdmacoll
