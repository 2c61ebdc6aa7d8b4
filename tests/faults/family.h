// Family: the processes of a case, and their parent. Nobody outlives it. Floor: tests. Thread: one,
// so that it may fork.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/faults/shared.h"

namespace rdmacoll::faults {

struct Ran {
  std::string problem;     // "": every survivor raised and could go on, nobody was left
  int64_t slowest_us = 0;  // from the fault to the last survivor's error
};

struct FamilyPlan {
  int world;
  int victim;
  bool is_stopped;  // the victim: once the others have raised, it wakes, and raises, too
  std::function<void(int rank, Shared& shared)> run;  // ends the process
};

Ran run_family(const FamilyPlan& plan);

}  // namespace rdmacoll::faults
