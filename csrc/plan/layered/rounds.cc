// Rounds, all_reduce. Part p has a block for each island: the owner of p there makes its result.
// Blocks are counted from the island that they are made on, around the circle.
// Floor: plan/layered.
#include "csrc/plan/layered/rounds.h"

#include <algorithm>

#include "csrc/base/limits.h"
#include "csrc/plan/layered/channels.h"
#include "csrc/plan/layered/parts.h"

namespace rdmacoll {
namespace {

// Messages of a round that are sent before the first one is taken. All send and take alike, so
// none may wait for room while nobody takes; the fewest slots that there are hold two.
constexpr size_t kAhead = 2;

// The largest message of a tile is an eighth of the blocks of a part. Larger ones would leave the
// messages of the last rounds small, and smaller ones would be many.
constexpr uint32_t kMessagesOfAPart = 8;
// A line of each fits in the smallest slot.
constexpr uint32_t kMessageBlocksMax = kSlotBytesMin / kLineBytes;

// The islands at this distance exchange so many blocks.
struct Round {
  uint32_t distance;
  uint32_t count;
};

std::vector<Round> rounds_of(uint32_t islands) {
  std::vector<Round> rounds;
  for (uint32_t left = islands; left > 1;) {
    const uint32_t distance = (left + 1) / 2;
    rounds.push_back({distance, left - distance});
    left = distance;
  }
  return rounds;
}

struct RoundsSeat {
  uint16_t rank;
  const Islands& islands;
  uint32_t message_blocks;
  Parts parts{islands, islands.count(), UINT32_MAX};
  uint32_t count = islands.count();
  uint32_t island = islands.of(rank);
  bool is_alone = islands.size(island) == 1;
  bool is_odd = count % 2 == 1;
  Parts::Range mine = parts.of(rank);
  std::vector<Round> rounds = rounds_of(count);

  uint32_t after(uint32_t distance) const { return (island + distance) % count; }
  uint32_t before(uint32_t distance) const { return (island + count - distance) % count; }
  BlockRange own(uint32_t part) const { return parts.block(part, island); }
  // The island's sum, before the first round.
  Operand first_sum(BlockRange range) const {
    return is_alone ? input(range) : slot(rank, range, kSums);
  }

  // Blocks [first, end) of a part, counted from an island: what is in a row, so many at a time.
  std::vector<BlockRange> cut(uint32_t part, uint32_t from, uint32_t first, uint32_t end) const {
    std::vector<BlockRange> messages;
    while (first < end) {
      const uint32_t at = (from + first) % count;
      const uint32_t length = std::min({end - first, message_blocks, count - at});
      messages.push_back(blocks(parts.block(part, at).first, length));
      first += length;
    }
    return messages;
  }

  // Sends and takes in turns.
  template <typename Send, typename Take>
  void exchange(const std::vector<BlockRange>& sent, const std::vector<BlockRange>& taken,
                const Send& send, const Take& take) const {
    for (size_t i = 0; i < std::max(sent.size(), taken.size()) + kAhead; ++i) {
      if (i < sent.size()) send(sent[i]);
      if (i + 1 >= kAhead && i + 1 - kAhead < taken.size()) take(taken[i + 1 - kAhead]);
    }
  }

  // The island's sums: those of the first round to their owners, the others to the next lane.
  void sum_up(PlanBuilder& plan) const {
    const BlockRange all = parts.group(0);
    const BlockRange read = parts.blocks_of(rank);
    plan.lane();
    plan.hold_stages(plan.others(), kInputs, all);
    for (uint32_t part = mine.begin; part < mine.end; ++part) {
      const uint32_t to = after(rounds.front().distance);
      const auto sum_to = [&](BlockRange range, uint16_t owner) {
        const Operands sources = island_inputs(rank, islands, range, kInputs, read.first);
        plan.reduce(sources, {peer_slot(owner, range, kSums)});
      };
      const auto keep = [&](BlockRange range) {
        if (!is_alone) sum_to(range, rank);
      };
      exchange(
          halved(part, to, 0), kept(part),
          [&](BlockRange range) { sum_to(range, parts.owner(part, to)); }, keep);
    }
    plan.release_stages(plan.others(), kInputs, all);
  }

  // What stays here in the first round. Where islands are odd in number, that is one block that
  // comes from no other; it goes on in the second round, as a message of its own.
  std::vector<BlockRange> kept(uint32_t part) const {
    std::vector<BlockRange> ranges = halved(part, island, 0);
    if (is_odd) ranges.push_back(odd_block(part, island));
    return ranges;
  }
  BlockRange odd_block(uint32_t part, uint32_t from) const {
    return parts.block(part, (from + rounds.front().count) % count);
  }

  // What comes to an island in a round.
  std::vector<BlockRange> halved(uint32_t part, uint32_t to, size_t round) const {
    const uint32_t come = rounds[round].count;
    if (round != 1 || !is_odd) return cut(part, to, 0, come);
    std::vector<BlockRange> ranges = cut(part, to, 0, come - 1);
    ranges.push_back(odd_block(part, (to + count - rounds[1].distance) % count));
    return ranges;
  }

  void halve(PlanBuilder& plan) const {
    plan.lane();
    for (uint32_t part = mine.begin; part < mine.end; ++part) {
      for (BlockRange range : halved(part, island, 0)) {
        add_sum(plan, part, rounds.front(), first_sum(range));
      }
      for (size_t round = 1; round < rounds.size(); ++round) halve(plan, part, round);
    }
  }

  void halve(PlanBuilder& plan, uint32_t part, size_t round) const {
    const uint32_t to = after(rounds[round].distance);
    const auto send = [&](BlockRange range) {
      const bool is_first_sum = is_odd && range == odd_block(part, island);
      plan.copy(is_first_sum ? first_sum(range) : output(range),
                {peer_slot(parts.owner(part, to), range, kSums)});
    };
    exchange(halved(part, to, round), halved(part, island, round), send,
             [&](BlockRange range) { add_sum(plan, part, rounds[round], output(range)); });
  }

  // The last round leaves the result of one block.
  void add_sum(PlanBuilder& plan, uint32_t part, const Round& round, Operand here) const {
    const BlockRange range = here.blocks;
    const Operands sums{here, slot(parts.owner(part, before(round.distance)), range, kSums)};
    if (round.distance > 1) return plan.reduce(sums, {output(range)});
    Operands destinations{output(range), peer_slot(rank, range)};
    if (!is_alone) destinations.push_back(stage(range, kResults));
    plan.finish(sums, destinations);
  }

  void double_up(PlanBuilder& plan) const {
    plan.lane();
    for (uint32_t part = mine.begin; part < mine.end; ++part) {
      plan.copy(slot(rank, own(part)), {peer_output(parts.owner(part, before(1)), own(part))});
      for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
        const uint16_t to = parts.owner(part, before(round->distance));
        const uint16_t from = parts.owner(part, after(round->distance));
        std::vector<BlockRange> sent = cut(part, island, 0, round->count);
        if (round == rounds.rbegin()) sent.clear();  // as above
        exchange(
            sent, gathered(part, island, *round),
            [&](BlockRange range) { plan.copy(output(range), {peer_output(to, range)}); },
            [&](BlockRange range) {
              Operands destinations{output(range)};
              if (!is_alone) destinations.push_back(stage(range, kRelayed));
              plan.copy(placed(from, range), destinations);
            });
      }
    }
  }

  std::vector<BlockRange> gathered(uint32_t part, uint32_t by, const Round& round) const {
    return cut(part, (by + round.distance) % count, 0, round.count);
  }

  // A lane for each peer: what one of them waits for may need another's messages to be taken.
  void collect(PlanBuilder& plan) const {
    for (uint16_t peer : plan.others()) {
      const Parts::Range theirs = parts.of(peer);
      const auto take = [&](BlockRange range, uint8_t channel) {
        plan.copy(peer_stage(peer, range, channel), {output(range)});
      };
      plan.lane();
      for (uint32_t part = theirs.begin; part < theirs.end; ++part) take(own(part), kResults);
      plan.lane();
      for (uint32_t part = theirs.begin; part < theirs.end; ++part) {
        for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
          for (BlockRange range : gathered(part, island, *round)) take(range, kRelayed);
        }
      }
    }
  }
};

}  // namespace

Plan rounds_all_reduce_with(uint16_t rank, const Islands& islands, uint32_t message_blocks) {
  const RoundsSeat seat{rank, islands, message_blocks};
  const uint32_t blocks = seat.parts.blocks();
  PlanBuilder plan(Collective::AllReduce, Algorithm::HalvingDoubling, rank, islands, blocks);
  publish_inputs(plan, seat.parts, seat.island);
  seat.sum_up(plan);
  seat.halve(plan);
  seat.double_up(plan);
  seat.collect(plan);
  plan.cut_alike(message_blocks, blocks);
  return plan.take();
}

Plan rounds_all_reduce(uint16_t rank, const Islands& islands, uint16_t) {
  const uint32_t eighth = (islands.count() + kMessagesOfAPart - 1) / kMessagesOfAPart;
  return rounds_all_reduce_with(rank, islands, std::min(eighth, kMessageBlocksMax));
}

}  // namespace rdmacoll
