// Which rank has which buffers, and what must be in them at the end.
#include "csrc/plan/verify_buffers.h"

#include "csrc/plan/verify_shape.h"

namespace rdmacoll {
namespace {

// plan.h, "Blocks": who has block `block` (0 of a contiguous collective).
bool has_input(Collective collective, uint16_t world, uint16_t root, uint16_t rank, size_t block) {
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Reduce:
    case Collective::ReduceScatter:
      return true;
    case Collective::Broadcast:
    case Collective::Scatter:
      return rank == root;
    case Collective::AllGather:
    case Collective::Gather:
      return block == rank;
    case Collective::AllToAll:
      return block < world;
    case Collective::Barrier:
      return false;
  }
  return false;
}

bool has_output(Collective collective, uint16_t world, uint16_t root, uint16_t rank, size_t block) {
  switch (collective) {
    case Collective::AllReduce:
    case Collective::AllGather:
      return true;
    case Collective::Reduce:
    case Collective::Gather:
      return rank == root;
    case Collective::Broadcast:
      return rank != root;
    case Collective::ReduceScatter:
    case Collective::Scatter:
      return block == rank;
    case Collective::AllToAll:
      return block >= world;
    case Collective::Barrier:
      return false;
  }
  return false;
}

bool is_sum(Collective collective) {
  return collective == Collective::AllReduce || collective == Collective::Reduce ||
         collective == Collective::ReduceScatter;
}

// Whose input, and which block of it, ends in output block `block` of `rank`.
std::pair<uint16_t, uint16_t> origin(Collective collective, uint16_t world, uint16_t root,
                                     uint16_t rank, size_t block) {
  const uint16_t b = static_cast<uint16_t>(block);
  switch (collective) {
    case Collective::Broadcast:
    case Collective::Scatter:
      return {root, b};
    case Collective::AllToAll:
      return {b - world, rank};
    default:
      return {b, b};
  }
}

std::string place(uint16_t rank, size_t block, size_t offset) {
  return "output of rank " + std::to_string(rank) + ", block " + std::to_string(block) + ", byte " +
         std::to_string(offset) + ": ";
}

}  // namespace

Buffers make_buffers(const WorldPlan& world_plan, uint32_t operation, uint16_t rank,
                     Symbols& symbols) {
  const Plan& plan = world_plan.plans[rank];
  const bool contiguous = is_contiguous(plan.collective);
  const size_t count = contiguous ? 1 : plan.blocks;
  Buffers buffers{std::vector<std::shared_ptr<Cells>>(count),
                  std::vector<std::shared_ptr<Cells>>(count)};
  for (size_t b = 0; b < count; ++b) {
    const uint64_t bytes = contiguous ? world_plan.bytes : world_plan.block_bytes[rank][b];
    if (has_input(plan.collective, plan.world, world_plan.root, rank, b)) {
      buffers.input[b] = std::make_shared<Cells>(bytes);
      for (uint64_t i = 0; i < bytes; ++i) {
        (*buffers.input[b])[i].value = symbols.leaf(rank, unit_of(operation, b, i));
      }
    }
    if (has_output(plan.collective, plan.world, world_plan.root, rank, b)) {
      const bool shared = world_plan.in_place && buffers.input[b];
      buffers.output[b] = shared ? buffers.input[b] : std::make_shared<Cells>(bytes);
    }
  }
  return buffers;
}

std::string wrong_result(const WorldPlan& world_plan, uint32_t operation,
                         const std::vector<Buffers>& ranks, Symbols& symbols) {
  const Plan& plan = world_plan.plans[0];
  for (uint16_t rank = 0; rank < plan.world; ++rank) {
    for (size_t b = 0; b < ranks[rank].output.size(); ++b) {
      if (!ranks[rank].output[b]) continue;
      const Cells& cells = *ranks[rank].output[b];
      for (size_t i = 0; i < cells.size(); ++i) {
        const Value value = cells[i].value;
        if (!is_sum(plan.collective)) {
          const auto [from, block] = origin(plan.collective, plan.world, world_plan.root, rank, b);
          if (value != symbols.leaf(from, unit_of(operation, block, i))) {
            return place(rank, b, i) + "not the byte that it should be";
          }
          continue;
        }
        if (!symbols.complete(value)) return place(rank, b, i) + "not a complete sum";
        if (symbols.unit(value) != unit_of(operation, b, i)) {
          return place(rank, b, i) + "the sum of another element";
        }
        if (plan.collective == Collective::AllReduce && value != (*ranks[0].output[b])[i].value) {
          return place(rank, b, i) + "folded in another order than on rank 0";
        }
      }
    }
  }
  return {};
}

}  // namespace rdmacoll
