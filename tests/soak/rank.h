// Rank: what a process of the soak does: makes groups, works in all of them at once from threads of
// its own, forks, is interrupted, destroys the groups; over and over. Nothing may be left.
// Floor: tests.
#pragma once

#include <cstdint>

#include "tests/processes/meeting.h"

namespace rdmacoll::soak {

struct Wanted {
  int ranks = 4;
  int64_t seconds = 30;
  uint64_t seed = 1;
};

// Ends the process: 0, or 1 and what is wrong on stderr. Rank 0 prints what was done.
[[noreturn]] void run_rank(const Wanted& wanted, int rank, Meeting& meeting);

}  // namespace rdmacoll::soak
