// What must hold of one plan by itself, whatever the sizes.
// Floor: plan/verify, behind verify.h only.
#pragma once

#include <string>

#include "csrc/plan/islands.h"
#include "csrc/plan/plan.h"

namespace rdmacoll {

// Empty, or what is malformed: operands that name no memory of their kind, blocks and peers out of
// range, two lanes in one direction of a (peer, channel).
std::string malformed(const Plan& plan, const Islands& islands);

// "step 5 (Wait Data, peer 1, channel 0, blocks 2+1)", for messages.
std::string step_text(const Plan& plan, uint32_t step);

}  // namespace rdmacoll
