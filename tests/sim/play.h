// A script from its beginning to its end, where nothing goes wrong. Floor: tests. Thread: one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "tests/sim/script.h"
#include "tests/sim/sim_world.h"

namespace rdmacoll {

// Each rank starts its operations when it likes; several may be in flight. `pause` after each start
// is to let things happen.
inline void play(SimWorld& world, Script& script, std::mt19937_64& random,
                 const std::function<void()>& pause) {
  std::vector<int> next(static_cast<size_t>(world.size()));
  std::vector<WorkPtr> works;
  while (std::any_of(next.begin(), next.end(), [&](int n) { return n < script.operations(); })) {
    const int rank = static_cast<int>(random() % static_cast<uint64_t>(world.size()));
    int& at = next[static_cast<size_t>(rank)];
    if (at < script.operations()) {
      for (WorkPtr& work : script.start(at++, world.rank(rank))) works.push_back(std::move(work));
    }
    pause();
  }
  ASSERT_TRUE(world.run(works)) << "stuck";
  for (const WorkPtr& work : works) ASSERT_TRUE(work->status().ok()) << work->status().message();
  for (int i = 0; i < script.operations(); ++i) {
    for (int rank = 0; rank < world.size(); ++rank) {
      ASSERT_EQ(script.check(i, rank), "");
      ASSERT_EQ(script.check_given_back(i, rank), "");
    }
  }
}

}  // namespace rdmacoll
