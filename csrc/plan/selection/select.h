// Select: which algorithms there are, and the plan of each. Which one an operation takes is in
// choices.h. Floor: plan/selection. Thread: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/plan/plan.h"

namespace rdmacoll {

// The algorithm or collective of this name, if there is one.
std::optional<Algorithm> algorithm_by_name(std::string_view name);
std::optional<Collective> collective_by_name(std::string_view name);
// Whether a user may give this name, or "auto", as the value of a setting.
Status check_algorithm(const std::string& setting, const std::string& value);

// Whether it can be taken by a group of so many ranks.
bool exists(Collective collective, Algorithm algorithm, uint32_t world, Reach reach);
std::vector<Algorithm> algorithms_of(Collective collective, uint32_t world, Reach reach);

// Whether each element of a reduction is folded at once from rank 0's to the last one's: then its
// bits depend on nothing but the contributions. The others fold in an order that follows from where
// in the tensor an element lies.
bool folds_in_rank_order(Algorithm algorithm);

// `algorithm` exists. root is of broadcast, reduce, gather and scatter.
Plan make_plan(Collective collective, Algorithm algorithm, uint16_t rank, uint16_t world,
               Reach reach, uint16_t root);

}  // namespace rdmacoll
