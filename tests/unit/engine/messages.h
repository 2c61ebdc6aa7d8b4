// What the tests of point-to-point share: the content of a message, and the work of a call that
// must start. Floor: tests. Thread: any.
#pragma once

#include <vector>

#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll {

inline std::vector<uint8_t> message(int seed, uint64_t bytes) {
  std::vector<uint8_t> data(bytes);
  for (uint64_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>(seed * 37 + i * 11);
  return data;
}

inline WorkPtr started(Result<WorkPtr> result) {
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.take();
}

}  // namespace rdmacoll
