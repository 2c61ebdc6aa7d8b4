// Select: which algorithms there are, and the plan of each. Which one an operation takes is in
// choices.h. Floor: plan/selection. Thread: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/plan/islands.h"
#include "csrc/plan/plan.h"
#include "csrc/plan/selection/chains.h"

namespace rdmacoll {

// The algorithm or collective of this name, if there is one.
std::optional<Algorithm> algorithm_by_name(std::string_view name);
std::optional<Collective> collective_by_name(std::string_view name);
// Whether a user may give this name, or "auto", as the value of a setting.
Status check_algorithm(const std::string& setting, const std::string& value);

// Whether it can be taken by a group whose ranks are so.
bool exists(Collective collective, Algorithm algorithm, const Islands& islands);
std::vector<Algorithm> algorithms_of(Collective collective, const Islands& islands);

// Whether all blocks of all ranks must be of one size (plan.h).
bool needs_equal_blocks(Collective collective, Algorithm algorithm);

// How many of its messages follow each other.
Chain chain_of(Collective collective, Algorithm algorithm, const Islands& islands);

// In which order an algorithm folds the contributions to an element of a reduction.
enum class FoldOrder : uint8_t {
  Position,  // follows from where in the tensor the element lies
  Layout,    // the same for all elements: it follows from which ranks share islands
  Ranks,     // at once from rank 0's to the last one's: bits depend on the contributions alone
};
FoldOrder fold_order(Algorithm algorithm);

// `algorithm` exists. root is of broadcast, reduce, gather and scatter.
Plan make_plan(Collective collective, Algorithm algorithm, uint16_t rank, const Islands& islands,
               uint16_t root);

}  // namespace rdmacoll
