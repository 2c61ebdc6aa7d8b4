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
#include "csrc/plan/layered/leaders.h"
#include "csrc/plan/layered/parts.h"
#include "csrc/plan/layered/rails.h"
#include "csrc/plan/layered/rounds.h"
#include "csrc/plan/selection/host_order.h"

namespace rdmacoll {
namespace {

using Maker = Plan (*)(uint16_t rank, const Islands& islands, uint16_t root);

template <Plan (*make)(uint16_t, uint16_t)>
Plan rootless(uint16_t rank, const Islands& islands, uint16_t) {
  return make(rank, static_cast<uint16_t>(islands.world()));
}

template <Plan (*make)(uint16_t, uint16_t, uint16_t)>
Plan rooted(uint16_t rank, const Islands& islands, uint16_t root) {
  return make(rank, static_cast<uint16_t>(islands.world()), root);
}

enum class For : uint8_t {
  Any,
  Mapped,  // all ranks are of one island
  Levels,  // there are several, and one has several ranks
};

struct Variant {
  Collective collective;
  Algorithm algorithm;
  For whom;
  Maker make;
  Chain (*chain)(const Islands& islands);
};

// Of two variants of an algorithm the first that the islands allow is taken.
constexpr Variant kVariants[] = {
    {Collective::AllReduce, Algorithm::OneShot, For::Any, rootless<one_shot_all_reduce>,
     chains::of<1>},
    {Collective::AllReduce, Algorithm::TwoShot, For::Mapped, rootless<two_shot_all_reduce>,
     chains::of<2>},
    {Collective::AllReduce, Algorithm::HalvingDoubling, For::Levels, rounds_all_reduce,
     chains::through_the_hosts_and_back},
    {Collective::AllReduce, Algorithm::HalvingDoubling, For::Any,
     rootless<halving_doubling_all_reduce>, chains::halving_and_doubling},
    {Collective::AllReduce, Algorithm::Direct, For::Any, rootless<direct_all_reduce>,
     chains::of<2>},
    {Collective::AllReduce, Algorithm::Ring, For::Any, rootless<ring_all_reduce>,
     chains::around<2>},
    {Collective::AllReduce, Algorithm::Tree, For::Any, rootless<tree_all_reduce>, chains::down<2>},
    {Collective::Broadcast, Algorithm::OneShot, For::Any, rooted<one_shot_broadcast>,
     chains::of<1>},
    {Collective::Broadcast, Algorithm::Direct, For::Mapped, rooted<direct_mapped_broadcast>,
     chains::of<1>},
    {Collective::Broadcast, Algorithm::Tree, For::Any, rooted<tree_broadcast>, chains::down<1>},
    {Collective::Reduce, Algorithm::OneShot, For::Any, rooted<one_shot_reduce>, chains::of<1>},
    {Collective::Reduce, Algorithm::TwoShot, For::Mapped, rooted<two_shot_reduce>, chains::of<2>},
    {Collective::Reduce, Algorithm::Tree, For::Any, rooted<tree_reduce>, chains::down<1>},
    {Collective::AllGather, Algorithm::Direct, For::Mapped, rootless<direct_mapped_all_gather>,
     chains::of<1>},
    {Collective::AllGather, Algorithm::Direct, For::Any, rootless<direct_all_gather>,
     chains::of<1>},
    {Collective::AllGather, Algorithm::Ring, For::Any, rootless<ring_all_gather>,
     chains::around<1>},
    {Collective::ReduceScatter, Algorithm::TwoShot, For::Mapped, rootless<two_shot_reduce_scatter>,
     chains::of<1>},
    {Collective::ReduceScatter, Algorithm::Direct, For::Any, rootless<direct_reduce_scatter>,
     chains::of<1>},
    {Collective::ReduceScatter, Algorithm::Ring, For::Any, rootless<ring_reduce_scatter>,
     chains::around<1>},
    {Collective::AllToAll, Algorithm::Direct, For::Any, rootless<direct_all_to_all>, chains::of<1>},
    {Collective::Gather, Algorithm::Direct, For::Any, rooted<direct_gather>, chains::of<1>},
    {Collective::Scatter, Algorithm::Direct, For::Any, rooted<direct_scatter>, chains::of<1>},
    {Collective::Barrier, Algorithm::Dissemination, For::Any, rootless<dissemination_barrier>,
     chains::in_rounds},
    {Collective::AllReduce, Algorithm::Rails, For::Levels, rails_all_reduce, chains::through<2, 2>},
    {Collective::Broadcast, Algorithm::Rails, For::Levels, rails_broadcast,
     chains::along_the_hosts},
    {Collective::Reduce, Algorithm::Rails, For::Levels, rails_reduce, chains::along_the_hosts},
    {Collective::AllGather, Algorithm::Rails, For::Levels, rails_all_gather, chains::through<1, 1>},
    {Collective::ReduceScatter, Algorithm::Rails, For::Levels, rails_reduce_scatter,
     chains::through<1, 1>},
    {Collective::AllReduce, Algorithm::Leaders, For::Levels, leaders_all_reduce,
     chains::through<1, 2>},
    {Collective::Broadcast, Algorithm::Leaders, For::Levels, leaders_broadcast,
     chains::through<1, 1>},
    {Collective::Reduce, Algorithm::Leaders, For::Levels, leaders_reduce, chains::through<1, 1>},
    {Collective::AllGather, Algorithm::Leaders, For::Levels, leaders_all_gather,
     chains::through<1, 2>},
    {Collective::ReduceScatter, Algorithm::Leaders, For::Levels, leaders_reduce_scatter,
     chains::through<1, 2>},
    {Collective::AllToAll, Algorithm::Leaders, For::Levels, leaders_all_to_all,
     chains::through<1, 2>},
    {Collective::Gather, Algorithm::Leaders, For::Levels, leaders_gather, chains::through<1, 2>},
    {Collective::Scatter, Algorithm::Leaders, For::Levels, leaders_scatter, chains::through<1, 2>},
    {Collective::Barrier, Algorithm::Leaders, For::Levels, leaders_barrier,
     chains::in_rounds_of_hosts},
};

bool suits(For whom, const Islands& islands) {
  switch (whom) {
    case For::Any:
      return true;
    case For::Mapped:
      return islands.all_mapped();
    case For::Levels:
      return islands.has_levels();
  }
  return false;
}

const Variant* find(Collective collective, Algorithm algorithm, const Islands& islands) {
  for (const Variant& variant : kVariants) {
    if (variant.collective == collective && variant.algorithm == algorithm &&
        suits(variant.whom, islands)) {
      return &variant;
    }
  }
  return nullptr;
}

// One message of halving_doubling between single ranks holds half the blocks, of which there are as
// many as the largest power of two in the world. One of leaders holds the blocks of an island.
bool fits(Collective collective, Algorithm algorithm, const Islands& islands) {
  if (algorithm == Algorithm::HalvingDoubling) {
    return islands.has_levels() || islands.world() < 4 * kSlotBlocksMax;
  }
  const bool holds_islands = algorithm == Algorithm::Leaders && !is_contiguous(collective);
  return !holds_islands || islands.largest() <= kSlotBlocksMax;
}

// Those that fold by ranks, or know of islands, need their ranks as they are.
bool is_renamed(const Variant& variant, const Islands& islands) {
  return variant.whom != For::Levels && fold_order(variant.algorithm) == FoldOrder::Position &&
         !islands.in_host_order();
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

bool exists(Collective collective, Algorithm algorithm, const Islands& islands) {
  return find(collective, algorithm, islands) != nullptr && fits(collective, algorithm, islands);
}

bool needs_equal_blocks(Collective collective, Algorithm algorithm) {
  const bool of_any_size = collective == Collective::AllToAll || collective == Collective::Gather ||
                           collective == Collective::Scatter;
  return of_any_size && algorithm != kOfAnySizes;
}

std::vector<Algorithm> algorithms_of(Collective collective, const Islands& islands) {
  std::vector<Algorithm> algorithms;
  for (const Variant& variant : kVariants) {
    const Algorithm algorithm = variant.algorithm;
    const bool known =
        std::find(algorithms.begin(), algorithms.end(), algorithm) != algorithms.end();
    if (variant.collective == collective && !known && exists(collective, algorithm, islands)) {
      algorithms.push_back(algorithm);
    }
  }
  return algorithms;
}

Chain chain_of(Collective collective, Algorithm algorithm, const Islands& islands) {
  const Variant* variant = find(collective, algorithm, islands);
  RDMACOLL_CHECK(variant != nullptr);
  if (islands.world() == 1) return {};
  if (!is_renamed(*variant, islands)) return variant->chain(islands);
  return variant->chain(islands.reordered());
}

FoldOrder fold_order(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::OneShot:
    case Algorithm::TwoShot:
    case Algorithm::Direct:
      return FoldOrder::Ranks;
    case Algorithm::Rails:
    case Algorithm::Leaders:
      return FoldOrder::Layout;
    default:
      return FoldOrder::Position;
  }
}

Plan make_plan(Collective collective, Algorithm algorithm, uint16_t rank, const Islands& islands,
               uint16_t root) {
  if (islands.world() == 1) return alone(collective, algorithm);
  const Variant* variant = find(collective, algorithm, islands);
  RDMACOLL_CHECK(variant != nullptr && root < islands.world());
  if (!is_renamed(*variant, islands)) return variant->make(rank, islands, root);
  Plan plan = variant->make(islands.position(rank), islands, islands.position(root));
  rename_positions(&plan, islands);
  return plan;
}

}  // namespace rdmacoll
