// Rank: what a process of a case does: the victim until its fault, the others until they have
// raised, and then all that must still be possible. Floor: tests.
#pragma once

#include <cstdint>

#include "tests/faults/case.h"
#include "tests/faults/shared.h"

namespace rdmacoll::faults {

// Ends the process.
[[noreturn]] void run_rank(const Case& what, int rank, uint64_t seed, Shared& shared);

}  // namespace rdmacoll::faults
