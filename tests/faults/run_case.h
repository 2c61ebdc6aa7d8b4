// RunCase: the parent of a case's processes. Nobody outlives it. Floor: tests.
#pragma once

#include <cstdint>
#include <string>

#include "tests/faults/case.h"

namespace rdmacoll::faults {

struct Ran {
  std::string problem;     // "": every survivor raised and could go on, nobody was left
  int64_t slowest_us = 0;  // from the fault to the last survivor's error
};

Ran run_case(const Case& what, uint64_t seed);

}  // namespace rdmacoll::faults
