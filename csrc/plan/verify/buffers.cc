// Which rank has which buffers, and what must be in them at the end.
#include "csrc/plan/verify/buffers.h"

#include "csrc/plan/selection/select.h"
#include "csrc/plan/verify/shape.h"

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
      return block >= world && block < 2u * world;
    case Collective::Barrier:
      return false;
  }
  return false;
}

// Whose input, and which block of it, ends in output block `block` of `rank`.
std::pair<uint16_t, uint16_t> origin(const Plan& plan, uint16_t root, uint16_t rank, size_t block) {
  const uint16_t b = static_cast<uint16_t>(block);
  switch (plan.collective) {
    case Collective::Broadcast:
    case Collective::Scatter:
      return {root, b};
    case Collective::AllToAll:
      return {b - plan.world, rank};
    default:
      return {rank_of(plan, b), b};
  }
}

// What is wrong with byte `i` of output block `block` of `rank`, or nothing.
const char* wrong_byte(const WorldPlan& world_plan, uint32_t operation,
                       const std::vector<Buffers>& ranks, Symbols& symbols, uint16_t rank,
                       size_t block, size_t i) {
  const Plan& plan = world_plan.plans[0];
  const Value value = (*ranks[rank].output[block])[i].value;
  if (!reduces(plan.collective)) {
    const auto [from, origin_block] = origin(plan, world_plan.root, rank, block);
    const bool right = value == symbols.leaf(from, unit_of(operation, origin_block, i));
    return right ? nullptr : "not the byte that it should be";
  }
  if (!symbols.complete(value)) return "not a complete sum";
  if (symbols.unit(value) != unit_of(operation, block, i)) return "the sum of another element";
  const FoldOrder order = plan.world == 1 ? FoldOrder::Position : fold_order(plan.algorithm);
  if (order == FoldOrder::Ranks && !symbols.in_rank_order(value)) return "not folded in rank order";
  if (order == FoldOrder::Layout &&
      symbols.order(value) != symbols.order((*ranks[rank].output[block])[0].value)) {
    return "folded in another order than the first element";
  }
  const bool same =
      plan.collective != Collective::AllReduce || value == (*ranks[0].output[block])[i].value;
  return same ? nullptr : "folded in another order than on rank 0";
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
    const uint16_t of = rank_of(plan, b);
    if (has_input(plan.collective, plan.world, world_plan.root, rank, of)) {
      buffers.input[b] = std::make_shared<Cells>(bytes);
      for (uint64_t i = 0; i < bytes; ++i) {
        (*buffers.input[b])[i].value = symbols.leaf(rank, unit_of(operation, b, i));
      }
    }
    if (has_output(plan.collective, plan.world, world_plan.root, rank, of)) {
      const bool shared = world_plan.in_place && buffers.input[b];
      buffers.output[b] = shared ? buffers.input[b] : std::make_shared<Cells>(bytes);
    }
  }
  return buffers;
}

std::string wrong_result(const WorldPlan& world_plan, uint32_t operation,
                         const std::vector<Buffers>& ranks, Symbols& symbols) {
  for (uint16_t rank = 0; rank < ranks.size(); ++rank) {
    for (size_t block = 0; block < ranks[rank].output.size(); ++block) {
      if (!ranks[rank].output[block]) continue;
      for (size_t i = 0; i < ranks[rank].output[block]->size(); ++i) {
        const char* why = wrong_byte(world_plan, operation, ranks, symbols, rank, block, i);
        if (why == nullptr) continue;
        return "output of rank " + std::to_string(rank) + ", block " + std::to_string(block) +
               ", byte " + std::to_string(i) + ": " + why;
      }
    }
  }
  return {};
}

}  // namespace rdmacoll
