// Select: which algorithm an operation takes, and the plan for it. The choice is a function of
// values that are equal on all ranks, so that all ranks choose alike. Floor: plan. Thread: pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "csrc/plan/plan.h"

namespace rdmacoll {

// The algorithm of this name (RDMACOLL_ALGO), if there is one.
std::optional<Algorithm> algorithm_by_name(std::string_view name);

bool exists(Collective collective, Algorithm algorithm, Reach reach);

// bytes: of the whole buffer for all_reduce, reduce and broadcast, of all blocks together for
// all_gather and reduce_scatter; the other collectives do not look at it, since their ranks do not
// know the same sizes. `preferred` is taken where it exists.
Algorithm choose(Collective collective, uint64_t bytes, uint32_t world, Reach reach,
                 std::optional<Algorithm> preferred);

// `algorithm` exists. root is of broadcast, reduce, gather and scatter.
Plan make_plan(Collective collective, Algorithm algorithm, uint16_t rank, uint16_t world,
               Reach reach, uint16_t root);

}  // namespace rdmacoll
