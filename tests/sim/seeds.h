// Which seeds a run of the simulation takes, and the loop over them. RDMACOLL_SIM_SEED=n replays
// one; RDMACOLL_SIM_FIRST and RDMACOLL_SIM_SEEDS name a range (tests/sim/run.py), else each test
// has its usual number, of which sanitizers see a third. Floor: tests. Thread: one.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/how_much.h"

namespace rdmacoll {

inline uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

// Seeds from which on what a run says of their sum means something.
inline constexpr uint64_t kEnoughToCount = 60;

inline bool replays_one_seed() { return from_environment("RDMACOLL_SIM_SEED", 0) != 0; }

// Until one fails; how many ran.
template <typename Run>
uint64_t for_each_seed(uint64_t usual, const Run& run) {
  const uint64_t one = from_environment("RDMACOLL_SIM_SEED", 0);
  const uint64_t first = one != 0 ? one : from_environment("RDMACOLL_SIM_FIRST", 1);
  if (kSanitized && !is_nightly()) usual = (usual + 2) / 3;
  const uint64_t count = one != 0 ? 1 : from_environment("RDMACOLL_SIM_SEEDS", usual);
  uint64_t ran = 0;
  for (; ran < count && !testing::Test::HasFailure(); ++ran) {
    SCOPED_TRACE("make sim SEED=" + std::to_string(first + ran));
    run(first + ran);
  }
  return ran;
}

}  // namespace rdmacoll
