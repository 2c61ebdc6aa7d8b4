// Parts: who owns what. Floor: plan/layered.
#include "csrc/plan/layered/parts.h"

#include <algorithm>

#include "csrc/base/limits.h"
#include "csrc/plan/layered/channels.h"

namespace rdmacoll {
namespace {

// The smallest stage has room for a line of so many blocks, and for one of each rank's.
constexpr uint32_t kBlocksAlways = kStageBytesMin / kLineBytes;

}  // namespace

Parts::Parts(const Islands& islands, uint32_t blocks_each)
    : islands_(islands),
      blocks_each_(blocks_each),
      count_(std::clamp(std::max(islands.world(), kBlocksAlways) / blocks_each, 1u,
                        islands.largest())) {}

uint16_t Parts::owner(uint32_t part, uint32_t island) const {
  const uint32_t place = ((part + 1) * islands_.size(island) - 1) / count_;
  return islands_.members(island)[place];
}

Parts::Range Parts::of(uint32_t rank) const {
  const uint32_t size = islands_.size(islands_.of(rank));
  const uint32_t place = islands_.place(rank);
  return {place * count_ / size, (place + 1) * count_ / size};
}

BlockRange Parts::blocks_of(uint32_t rank) const {
  const Range mine = of(rank);
  return rdmacoll::blocks(mine.begin * blocks_each_, (mine.end - mine.begin) * blocks_each_);
}

void publish_inputs(PlanBuilder& plan, const Parts& parts) {
  const BlockRange all = blocks(0, parts.blocks());
  plan.lane();
  for (uint16_t peer : plan.others()) plan.wait(Counter::Credit, peer, kInputs, all);
  for (uint16_t peer : plan.others()) {
    const BlockRange theirs = parts.blocks_of(peer);
    if (theirs.count != 0) plan.bare_copy(input(theirs), {stage(theirs, kInputs)});
  }
  for (uint16_t peer : plan.others()) {
    const BlockRange theirs = parts.blocks_of(peer);
    if (theirs.count != 0) {
      plan.signal_data(peer, kInputs, all, input(theirs));
    } else {
      plan.signal(Counter::Data, peer, kInputs, all);
    }
  }
}

std::vector<uint16_t> islands_from(uint32_t island, const Islands& islands) {
  return others_from(static_cast<uint16_t>(island), static_cast<uint16_t>(islands.count()));
}

uint16_t leader(uint32_t island, uint32_t to, const Islands& islands) {
  const auto members = islands.members(island);
  return members[to % members.size()];
}

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
