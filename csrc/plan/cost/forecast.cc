// Forecast: counting and adding up. Floor: plan/cost.
#include "csrc/plan/cost/forecast.h"

#include <algorithm>
#include <set>

#include "csrc/plan/selection/select.h"

namespace rdmacoll {
namespace {

bool is_contiguous(Collective collective) {
  return collective == Collective::AllReduce || collective == Collective::Reduce ||
         collective == Collective::Broadcast || collective == Collective::Barrier;
}

Tiling tiling_of(const Plan& plan, const std::vector<uint64_t>& block_bytes, uint64_t bytes,
                 const Room& room) {
  return is_contiguous(plan.collective)
             ? Tiling::contiguous(bytes, plan, room.slot_bytes, room.stage_bytes, 1)
             : Tiling::scattered(block_bytes, plan, room.slot_bytes, room.stage_bytes, 1);
}

// Blocks of one size, which are `bytes` together. Of an all_to_all these are a rank's, each way.
std::vector<uint64_t> even_blocks(const Plan& plan, uint64_t bytes) {
  return std::vector<uint64_t>(plan.blocks, bytes / plan.world);
}

Moved moved_by(const Plan& plan, const Islands& islands) {
  const uint64_t bytes = Forecast::kCountedBytes;
  const std::vector<uint64_t> block_bytes = even_blocks(plan, bytes);
  const uint64_t everything = bytes * std::max<uint64_t>(plan.blocks, 1);
  const Tiling one_tile = tiling_of(plan, block_bytes, bytes, {everything, everything});
  Moved moved;
  for (const Operand& operand : plan.operands) {
    const uint64_t piece = one_tile.piece(operand.blocks, 0).bytes;
    const bool in_slot = operand.buffer == Buffer::Slot || operand.buffer == Buffer::PeerSlot;
    const bool far = in_slot && !islands.share(operand.rank, plan.rank);
    if (far && operand.buffer == Buffer::PeerSlot) moved.out_bytes += piece;
    if (far && operand.buffer == Buffer::Slot) moved.in_bytes += piece;
    if (!far) moved.memory_bytes += piece;
  }
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::Wait && step.kind != StepKind::Signal) continue;
    if (step.counter != Counter::Data) continue;
    ++(islands.share(step.peer, plan.rank) ? moved.memory_messages : moved.network_messages);
  }
  return moved;
}

}  // namespace

Moved& Moved::operator+=(const Moved& other) {
  network_messages += other.network_messages;
  memory_messages += other.memory_messages;
  out_bytes += other.out_bytes;
  in_bytes += other.in_bytes;
  memory_bytes += other.memory_bytes;
  return *this;
}

// Islands of the root and of the last rank, and the largest and smallest: the others do as these.
Forecast::Forecast(Collective collective, Algorithm algorithm, const Islands& islands)
    : first_(make_plan(collective, algorithm, 0, islands, 0)),
      chain_(chain_of(collective, algorithm, islands)) {
  std::set<uint32_t> counted{islands.of(0), islands.of(islands.world() - 1)};
  uint32_t largest = 0, smallest = 0;
  for (uint32_t island = 0; island < islands.count(); ++island) {
    if (islands.size(island) > islands.size(largest)) largest = island;
    if (islands.size(island) < islands.size(smallest)) smallest = island;
  }
  counted.insert({largest, smallest});
  for (uint32_t island : counted) {
    Moved all;
    for (uint16_t rank : islands.members(island)) {
      ranks_.push_back(moved_by(make_plan(collective, algorithm, rank, islands, 0), islands));
      all += ranks_.back();
    }
    most_out_ = std::max(most_out_, all.out_bytes);
    most_in_ = std::max(most_in_, all.in_bytes);
  }
}

uint64_t Forecast::tiles(uint64_t bytes, const Room& room) const {
  if (first_.lanes.empty() || bytes == 0) return 1;
  const std::vector<uint64_t> block_bytes = even_blocks(first_, bytes);
  const Tiling tiling = tiling_of(first_, block_bytes, bytes, room);
  return std::max<uint64_t>(tiling.tiles({0, 1}), 1);
}

int64_t Forecast::work_ns(const Moved& moved, uint64_t bytes, uint64_t tiles,
                          const Links& links) const {
  const auto times = static_cast<int64_t>(tiles);
  return times * (static_cast<int64_t>(moved.network_messages) * links.network.overhead_ns +
                  static_cast<int64_t>(moved.memory_messages) * links.memory.overhead_ns) +
         static_cast<int64_t>(scaled(moved.memory_bytes, bytes)) * links.memory.gap_ps / 1000;
}

int64_t Forecast::time_ns(uint64_t bytes, const Room& room, const Links& links) const {
  const uint64_t cut = tiles(bytes, room);
  int64_t work_ns_most = 0;
  uint64_t rank_most = 0;
  for (const Moved& rank : ranks_) {
    work_ns_most = std::max(work_ns_most, work_ns(rank, bytes, cut, links));
    rank_most = std::max(rank_most, rank.out_bytes + rank.in_bytes);
  }
  const auto by_rank = static_cast<int64_t>(scaled(rank_most, bytes)) * links.network.gap_ps;
  const auto by_host =
      static_cast<int64_t>(scaled(most_out_ + most_in_, bytes)) * links.network.host_gap_ps;
  const int64_t network_ns = std::max(by_rank, by_host) / 1000;
  const int64_t latency_ns =
      chain_.network * links.network.latency_ns + chain_.memory * links.memory.latency_ns;
  return latency_ns + std::max(work_ns_most, network_ns) +
         std::min(work_ns_most, network_ns) / static_cast<int64_t>(cut);
}

}  // namespace rdmacoll
