// Select: the table of what exists.
#include "csrc/plan/selection/select.h"

#include <algorithm>

#include "csrc/base/check.h"
#include "csrc/base/config.h"
#include "csrc/base/limits.h"
#include "csrc/plan/algorithms/alone.h"
#include "csrc/plan/algorithms/direct.h"
#include "csrc/plan/algorithms/dissemination.h"
#include "csrc/plan/algorithms/halving_doubling.h"
#include "csrc/plan/algorithms/one_shot.h"
#include "csrc/plan/algorithms/ring.h"
#include "csrc/plan/algorithms/tree.h"
#include "csrc/plan/algorithms/two_shot.h"

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
    {Collective::AllReduce, Algorithm::Direct, false, rootless<direct_all_reduce>},
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

// One message of halving_doubling holds half the blocks, of which there are as many as the largest
// power of two in the world; with a cache line for each they must fit in the smallest slot.
constexpr uint32_t kHalvingBlocksMax = 2 * kSlotBytesMin / kLineBytes;

bool fits(Algorithm algorithm, uint32_t world) {
  return algorithm != Algorithm::HalvingDoubling || world < 2 * kHalvingBlocksMax;
}

}  // namespace

std::optional<Algorithm> algorithm_by_name(std::string_view name) {
  for (const Variant& variant : kVariants) {
    if (name == algorithm_name(variant.algorithm)) return variant.algorithm;
  }
  return std::nullopt;
}

std::optional<Collective> collective_by_name(std::string_view name) {
  for (const Variant& variant : kVariants) {
    if (name == collective_name(variant.collective)) return variant.collective;
  }
  return std::nullopt;
}

Status check_algorithm(const std::string& setting, const std::string& value) {
  std::vector<std::string> names{"auto"};
  for (const Variant& variant : kVariants) {
    const char* name = algorithm_name(variant.algorithm);
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    if (!known && variant.collective != Collective::Barrier) names.push_back(name);
  }
  return check_choice(setting, value, names);
}

bool exists(Collective collective, Algorithm algorithm, uint32_t world, Reach reach) {
  return find(collective, algorithm, reach) != nullptr && fits(algorithm, world);
}

std::vector<Algorithm> algorithms_of(Collective collective, uint32_t world, Reach reach) {
  std::vector<Algorithm> algorithms;
  for (const Variant& variant : kVariants) {
    const Algorithm algorithm = variant.algorithm;
    const bool known =
        std::find(algorithms.begin(), algorithms.end(), algorithm) != algorithms.end();
    if (variant.collective == collective && !known && exists(collective, algorithm, world, reach)) {
      algorithms.push_back(algorithm);
    }
  }
  return algorithms;
}

bool folds_in_rank_order(Algorithm algorithm) {
  return algorithm == Algorithm::OneShot || algorithm == Algorithm::TwoShot ||
         algorithm == Algorithm::Direct;
}

Plan make_plan(Collective collective, Algorithm algorithm, uint16_t rank, uint16_t world,
               Reach reach, uint16_t root) {
  if (world == 1) return alone(collective, algorithm);
  const Variant* variant = find(collective, algorithm, reach);
  RDMACOLL_CHECK(variant != nullptr && root < world);
  return variant->make(rank, world, root);
}

}  // namespace rdmacoll
