// A world of one rank: the input is the result. No messages.
// Floor: plan/algorithms.
#pragma once

#include "csrc/plan/plan.h"

namespace rdmacoll {

// A reduction still folds its one source, for what an operation does when it finishes (AVG).
Plan alone(Collective collective, Algorithm algorithm);

}  // namespace rdmacoll
