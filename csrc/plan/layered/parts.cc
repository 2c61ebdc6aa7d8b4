// Parts: who owns what. Floor: plan/layered.
#include "csrc/plan/layered/parts.h"

#include <algorithm>

#include "csrc/plan/layered/channels.h"

namespace rdmacoll {
namespace {

// The smallest stage has room for a line of so many blocks, and for one of each rank's.
constexpr uint32_t kBlocksAlways = kStageBytesMin / kLineBytes;

}  // namespace

Parts::Parts(const Islands& islands, uint32_t blocks_each, uint32_t stage_blocks)
    : islands_(islands),
      blocks_each_(blocks_each),
      count_(std::clamp(std::max(islands.world(), kBlocksAlways) / blocks_each, 1u,
                        islands.largest())),
      group_each_(std::clamp(stage_blocks / count_, 1u, blocks_each)) {}

uint32_t Parts::in_group(uint32_t group) const {
  return std::min(group_each_, blocks_each_ - group * group_each_);
}

BlockRange Parts::block(uint32_t part, uint32_t index) const {
  const uint32_t group = group_of(index);
  return rdmacoll::block(group * group_blocks() + part * in_group(group) + index % group_each_);
}

BlockRange Parts::group(uint32_t group) const {
  return rdmacoll::blocks(group * group_blocks(), in_group(group) * count_);
}

std::vector<uint32_t> Parts::groups_of(uint32_t island) const {
  bool own_one = true;
  for (uint32_t i = 0; i < islands_.count(); ++i) own_one &= islands_.size(i) >= count_;
  const uint32_t first = own_one && groups() > 1 ? group_of(island) : 0;
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < groups(); ++i) all.push_back((first + i) % groups());
  return all;
}

std::vector<uint16_t> Parts::others_in(uint32_t group, uint32_t island) const {
  const uint32_t first = group * group_each_, count = in_group(group);
  std::vector<uint16_t> others;
  for (uint32_t i = 1; i <= count; ++i) {
    const uint32_t other = first + (island % group_each_ + i) % count;
    if (other != island) others.push_back(static_cast<uint16_t>(other));
  }
  return others;
}

uint16_t Parts::owner(uint32_t part, uint32_t island) const {
  const uint32_t place = ((part + 1) * islands_.size(island) - 1) / count_;
  return islands_.members(island)[place];
}

Parts::Range Parts::of(uint32_t rank) const {
  const uint32_t size = islands_.size(islands_.of(rank));
  const uint32_t place = islands_.place(rank);
  return {place * count_ / size, (place + 1) * count_ / size};
}

BlockRange Parts::blocks_of(uint32_t rank, uint32_t group) const {
  const Range mine = of(rank);
  const uint32_t each = in_group(group);
  return rdmacoll::blocks(group * group_blocks() + mine.begin * each,
                          (mine.end - mine.begin) * each);
}

void publish_inputs(PlanBuilder& plan, const Parts& parts, uint32_t island) {
  plan.lane();
  for (uint32_t group : parts.groups_of(island)) {
    const BlockRange all = parts.group(group);
    for (uint16_t peer : plan.others()) plan.wait(Counter::Credit, peer, kInputs, all);
    for (uint16_t peer : plan.others()) {
      const BlockRange theirs = parts.blocks_of(peer, group);
      if (theirs.count != 0) plan.bare_copy(input(theirs), {stage(theirs, kInputs)});
    }
    for (uint16_t peer : plan.others()) {
      const BlockRange theirs = parts.blocks_of(peer, group);
      if (theirs.count != 0) {
        plan.signal_data(peer, kInputs, all, input(theirs));
      } else {
        plan.signal(Counter::Data, peer, kInputs, all);
      }
    }
  }
}

std::vector<uint16_t> islands_from(uint32_t island, const Islands& islands) {
  return others_from(static_cast<uint16_t>(island), static_cast<uint16_t>(islands.count()));
}

std::vector<uint16_t> islands_before(uint32_t island, const Islands& islands) {
  std::vector<uint16_t> others = islands_from(island, islands);
  std::reverse(others.begin(), others.end());
  return others;
}

uint16_t leader(uint32_t island, uint32_t to, const Islands& islands) {
  const auto members = islands.members(island);
  return members[to % members.size()];
}

std::vector<uint16_t> led(uint16_t rank, const Islands& islands) {
  const uint16_t island = islands.of(rank);
  std::vector<uint16_t> others;
  for (uint16_t other : islands_from(island, islands)) {
    if (leader(island, other, islands) == rank) others.push_back(other);
  }
  return others;
}

BlockRange blocks_of(uint32_t island, const Islands& islands) {
  return blocks(islands.before(island), islands.size(island));
}

BlockRange block_of(uint32_t rank, const Islands& islands) { return block(islands.position(rank)); }

Operands island_inputs(uint16_t rank, const Islands& islands, BlockRange block, uint8_t channel,
                       uint16_t first_of_source) {
  Operands sources;
  for (uint16_t member : islands.members(islands.of(rank))) {
    sources.push_back(member == rank ? input(block)
                                     : part_of_stage(member, block, channel, first_of_source));
  }
  return sources;
}

}  // namespace rdmacoll
