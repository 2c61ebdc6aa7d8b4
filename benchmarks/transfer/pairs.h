// A pair of processes for each way, and the rounds: in each, every way has a turn while the other
// processes sleep. Who begins changes from round to round. rdmacoll/bench/transfer does the same.
// Floor: benchmarks. Thread: the parent's; a child's main one.
#pragma once

#include <vector>

#include "benchmarks/transfer/way.h"

namespace rdmacoll::bench {

// Measures and prints; what a main returns. The arguments are those of options.h. The first way is
// the one that the others are compared with.
int compare(const std::vector<NamedWay>& ways, int argc, char** argv);

}  // namespace rdmacoll::bench
