// Forecast: counting and adding up. Floor: plan/cost.
#include "csrc/plan/cost/forecast.h"

#include <algorithm>
#include <set>

#include "csrc/plan/selection/select.h"

namespace rdmacoll {
namespace {

constexpr uint32_t kCountedWhole = 64;  // ranks

// In 128 bits: a thousand hosts that send gigabytes to each other are more than 64 hold.
int64_t cost_ns(uint64_t bytes, int64_t gap_ps) {
  return static_cast<int64_t>(static_cast<unsigned __int128>(bytes) *
                              static_cast<uint64_t>(gap_ps) / 1000);
}

Moved moved_by(const Plan& plan, const Islands& islands) {
  const EvenTiling whole = EvenTiling::whole(plan, Forecast::kCountedBytes);
  Moved moved;
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::Copy || step.kind == StepKind::Reduce) {
      for (uint16_t i = 0; i < step.operands; ++i) {
        const Operand& operand = plan.operands[step.first_operand + i];
        const uint64_t piece = whole.bytes_of(operand.blocks);
        const bool in_slot = operand.buffer == Buffer::Slot || operand.buffer == Buffer::PeerSlot;
        const bool far = in_slot && !islands.share(operand.rank, plan.rank);
        if (far && operand.buffer == Buffer::PeerSlot) moved.out_bytes += piece;
        if (far && operand.buffer == Buffer::Slot) moved.in_bytes += piece;
        if (!far) moved.memory_bytes += piece;
      }
    } else if (step.counter == Counter::Data) {
      ++(islands.share(step.peer, plan.rank) ? moved.memory_messages : moved.network_messages);
    }
  }
  return moved;
}

// All, where ranks are few. Else the first, that of the root, the next and the last, and of the
// others the largest and the smallest: the rest do as these.
std::set<uint32_t> counted_islands(const Islands& islands, uint16_t root) {
  std::set<uint32_t> counted{0, islands.of(root), islands.count() - 1};
  uint32_t largest = 1, smallest = 1;
  for (uint32_t island = 1; island < islands.count(); ++island) {
    if (islands.world() <= kCountedWhole) counted.insert(island);
    if (islands.size(island) > islands.size(largest)) largest = island;
    if (islands.size(island) < islands.size(smallest)) smallest = island;
  }
  if (islands.count() == 1) return counted;
  counted.insert({(islands.of(root) + 1u) % islands.count(), largest, smallest});
  return counted;
}

// All of the islands that are counted. But nothing leaves a single island, and of many ranks there
// the first, the root, the next and the last show what all do.
bool is_counted(uint32_t rank, const Islands& islands, uint16_t root) {
  const uint32_t world = islands.world();
  if (!islands.all_mapped() || world <= kCountedWhole) return true;
  return rank == 0 || rank == root || rank == (root + 1u) % world || rank == world - 1;
}

}  // namespace

Forecast::Forecast(Collective collective, Algorithm algorithm, const Islands& islands,
                   uint16_t root)
    : first_(make_plan(collective, algorithm, 0, islands, root)),
      chain_(chain_of(collective, algorithm, islands)) {
  for (uint32_t island : counted_islands(islands, root)) {
    uint64_t out_bytes = 0, in_bytes = 0;
    for (uint16_t rank : islands.members(island)) {
      if (!is_counted(rank, islands, root)) continue;
      ranks_.push_back(moved_by(make_plan(collective, algorithm, rank, islands, root), islands));
      out_bytes += ranks_.back().out_bytes;
      in_bytes += ranks_.back().in_bytes;
    }
    most_out_ = std::max(most_out_, out_bytes);
    most_in_ = std::max(most_in_, in_bytes);
  }
}

uint64_t Forecast::tiles(uint64_t bytes, const Room& room) const {
  if (first_.lanes.empty() || bytes == 0) return 1;
  return EvenTiling(first_, bytes, room).tiles();
}

int64_t Forecast::work_ns(const Moved& moved, uint64_t bytes, uint64_t tiles,
                          const Links& links) const {
  const auto times = static_cast<int64_t>(tiles);
  return times * (static_cast<int64_t>(moved.network_messages) * links.network.overhead_ns +
                  static_cast<int64_t>(moved.memory_messages) * links.memory.overhead_ns) +
         cost_ns(scaled(moved.memory_bytes, bytes), links.memory.gap_ps);
}

int64_t Forecast::time_ns(uint64_t bytes, const Room& room, const Links& links) const {
  const uint64_t cut = tiles(bytes, room);
  int64_t work_ns_most = 0;
  uint64_t rank_most = 0;
  uint64_t messages = 1;  // of the rank with the most bytes
  for (const Moved& rank : ranks_) {
    work_ns_most = std::max(work_ns_most, work_ns(rank, bytes, cut, links));
    if (rank.out_bytes + rank.in_bytes <= rank_most) continue;
    rank_most = rank.out_bytes + rank.in_bytes;
    messages = std::max<uint64_t>(rank.network_messages, 1);
  }
  const int64_t network_ns =
      std::max(cost_ns(scaled(rank_most, bytes), links.network.gap_ps),
               cost_ns(scaled(most_out_ + most_in_, bytes), links.network.host_gap_ps));
  const int64_t latency_ns =
      chain_.network * links.network.latency_ns + chain_.memory * links.memory.latency_ns;
  return latency_ns + std::max(work_ns_most, network_ns) +
         std::min(work_ns_most, network_ns) / static_cast<int64_t>(cut * messages);
}

}  // namespace rdmacoll
