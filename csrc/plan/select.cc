// Select: two tables, what exists and what is chosen.
#include "csrc/plan/select.h"

#include <string_view>

#include "csrc/base/check.h"
#include "csrc/base/limits.h"
#include "csrc/plan/alone.h"
#include "csrc/plan/direct.h"
#include "csrc/plan/dissemination.h"
#include "csrc/plan/halving_doubling.h"
#include "csrc/plan/one_shot.h"
#include "csrc/plan/ring.h"
#include "csrc/plan/tree.h"
#include "csrc/plan/two_shot.h"

namespace rdmacoll {
namespace {

using Maker = Plan (*)(uint16_t rank, uint16_t world, uint16_t root);

template <Plan (*make)(uint16_t, uint16_t)>
Plan rootless(uint16_t rank, uint16_t world, uint16_t) {
  return make(rank, world);
}

struct Variant {
  Collective collective;
  Algorithm algorithm;
  bool mapped;  // needs all peers mapped
  Maker make;
};

// Of two variants of an algorithm the first that the reach allows is taken.
constexpr Variant kVariants[] = {
    {Collective::AllReduce, Algorithm::OneShot, false, rootless<one_shot_all_reduce>},
    {Collective::AllReduce, Algorithm::TwoShot, true, rootless<two_shot_all_reduce>},
    {Collective::AllReduce, Algorithm::HalvingDoubling, false,
     rootless<halving_doubling_all_reduce>},
    {Collective::AllReduce, Algorithm::Ring, false, rootless<ring_all_reduce>},
    {Collective::AllReduce, Algorithm::Tree, false, rootless<tree_all_reduce>},
    {Collective::Broadcast, Algorithm::OneShot, false, one_shot_broadcast},
    {Collective::Broadcast, Algorithm::Direct, true, direct_mapped_broadcast},
    {Collective::Broadcast, Algorithm::Tree, false, tree_broadcast},
    {Collective::Reduce, Algorithm::OneShot, false, one_shot_reduce},
    {Collective::Reduce, Algorithm::TwoShot, true, two_shot_reduce},
    {Collective::Reduce, Algorithm::Tree, false, tree_reduce},
    {Collective::AllGather, Algorithm::Direct, true, rootless<direct_mapped_all_gather>},
    {Collective::AllGather, Algorithm::Direct, false, rootless<direct_all_gather>},
    {Collective::AllGather, Algorithm::Ring, false, rootless<ring_all_gather>},
    {Collective::ReduceScatter, Algorithm::TwoShot, true, rootless<two_shot_reduce_scatter>},
    {Collective::ReduceScatter, Algorithm::Direct, false, rootless<direct_reduce_scatter>},
    {Collective::ReduceScatter, Algorithm::Ring, false, rootless<ring_reduce_scatter>},
    {Collective::AllToAll, Algorithm::Direct, false, rootless<direct_all_to_all>},
    {Collective::Gather, Algorithm::Direct, false, direct_gather},
    {Collective::Scatter, Algorithm::Direct, false, direct_scatter},
    {Collective::Barrier, Algorithm::Dissemination, false, rootless<dissemination_barrier>},
};

const Variant* find(Collective collective, Algorithm algorithm, Reach reach) {
  for (const Variant& variant : kVariants) {
    if (variant.collective == collective && variant.algorithm == algorithm &&
        (reach.all_mapped || !variant.mapped)) {
      return &variant;
    }
  }
  return nullptr;
}

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kAny = UINT64_MAX;

// One message of halving_doubling holds half the blocks, of which there are as many as the largest
// power of two in the world; with a cache line for each they must fit in the smallest slot.
constexpr uint32_t kHalvingBlocksMax = 2 * kSlotBytesMin / kLineBytes;

bool fits(Algorithm algorithm, uint32_t world) {
  return algorithm != Algorithm::HalvingDoubling || world < 2 * kHalvingBlocksMax;
}

// The first row that fits is taken. A one-shot moves world times the bytes, hence the third bound.
struct Choice {
  Collective collective;
  bool mapped;
  uint64_t max_bytes;
  uint64_t max_bytes_times_world;
  Algorithm algorithm;
};

constexpr Choice kChoices[] = {
    {Collective::AllReduce, true, 16 * kKiB, 32 * kKiB, Algorithm::OneShot},
    {Collective::AllReduce, true, kAny, kAny, Algorithm::TwoShot},
    {Collective::AllReduce, false, 4 * kKiB, 16 * kKiB, Algorithm::OneShot},
    {Collective::AllReduce, false, 512 * kKiB, kAny, Algorithm::HalvingDoubling},
    {Collective::AllReduce, false, kAny, kAny, Algorithm::Ring},
    {Collective::Broadcast, true, 4 * kKiB, 16 * kKiB, Algorithm::OneShot},
    {Collective::Broadcast, true, kAny, kAny, Algorithm::Direct},
    {Collective::Broadcast, false, 4 * kKiB, 16 * kKiB, Algorithm::OneShot},
    {Collective::Broadcast, false, kAny, kAny, Algorithm::Tree},
    {Collective::Reduce, true, 16 * kKiB, 64 * kKiB, Algorithm::OneShot},
    {Collective::Reduce, true, kAny, kAny, Algorithm::TwoShot},
    {Collective::Reduce, false, 4 * kKiB, 16 * kKiB, Algorithm::OneShot},
    {Collective::Reduce, false, kAny, kAny, Algorithm::Tree},
    {Collective::AllGather, true, kAny, kAny, Algorithm::Direct},
    {Collective::AllGather, false, 2 * kMiB, kAny, Algorithm::Direct},
    {Collective::AllGather, false, kAny, kAny, Algorithm::Ring},
    {Collective::ReduceScatter, true, 16 * kKiB, kAny, Algorithm::Direct},
    {Collective::ReduceScatter, true, kAny, kAny, Algorithm::TwoShot},
    {Collective::ReduceScatter, false, 2 * kMiB, kAny, Algorithm::Direct},
    {Collective::ReduceScatter, false, kAny, kAny, Algorithm::Ring},
    {Collective::AllToAll, true, kAny, kAny, Algorithm::Direct},
    {Collective::AllToAll, false, kAny, kAny, Algorithm::Direct},
    {Collective::Gather, true, kAny, kAny, Algorithm::Direct},
    {Collective::Gather, false, kAny, kAny, Algorithm::Direct},
    {Collective::Scatter, true, kAny, kAny, Algorithm::Direct},
    {Collective::Scatter, false, kAny, kAny, Algorithm::Direct},
    {Collective::Barrier, true, kAny, kAny, Algorithm::Dissemination},
    {Collective::Barrier, false, kAny, kAny, Algorithm::Dissemination},
};

}  // namespace

std::optional<Algorithm> algorithm_by_name(std::string_view name) {
  for (const Variant& variant : kVariants) {
    if (name == algorithm_name(variant.algorithm)) return variant.algorithm;
  }
  return std::nullopt;
}

bool exists(Collective collective, Algorithm algorithm, Reach reach) {
  return find(collective, algorithm, reach) != nullptr;
}

Algorithm choose(Collective collective, uint64_t bytes, uint32_t world, Reach reach,
                 std::optional<Algorithm> preferred) {
  if (preferred && exists(collective, *preferred, reach) && fits(*preferred, world))
    return *preferred;
  const uint64_t bytes_times_world = bytes > kAny / world ? kAny : bytes * world;
  for (const Choice& choice : kChoices) {
    if (choice.collective == collective && choice.mapped == reach.all_mapped &&
        bytes <= choice.max_bytes && bytes_times_world <= choice.max_bytes_times_world &&
        fits(choice.algorithm, world)) {
      return choice.algorithm;
    }
  }
  RDMACOLL_CHECK(!"every collective ends with a row that always fits");
  return {};
}

Plan make_plan(Collective collective, Algorithm algorithm, uint16_t rank, uint16_t world,
               Reach reach, uint16_t root) {
  if (world == 1) return alone(collective, algorithm);
  const Variant* variant = find(collective, algorithm, reach);
  RDMACOLL_CHECK(variant != nullptr && root < world);
  return variant->make(rank, world, root);
}

}  // namespace rdmacoll
