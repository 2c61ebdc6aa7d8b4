// Host order: plans of one level in which neighbours send to each other, on hosts whose ranks are
// not in a row. A ring around ranks that were dealt out in turns leaves its host with every
// message; in host order it does so once per host. Floor: plan/selection. Thread: pure functions.
#pragma once

#include "csrc/plan/islands.h"
#include "csrc/plan/plan.h"

namespace rdmacoll {

// From the plan of the rank at a position in host order, made for a world of positions: the plan of
// the rank itself. Blocks that belong to ranks keep their numbers, which then are positions.
void rename_positions(Plan* plan, const Islands& islands);

}  // namespace rdmacoll
