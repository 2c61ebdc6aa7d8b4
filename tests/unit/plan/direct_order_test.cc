// In which order a direct all_to_all sends.
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/plan/layouts.h"
#include "tests/unit/plan/worlds.h"

namespace rdmacoll::direct_order_test {
namespace {

// If all ranks send at the same pace, each is sent to by one at a time: nowhere do all hosts meet.
TEST(DirectOrderTest, InADirectAllToAllNoRankIsSentToByTwoAtATime) {
  for (const Islands& islands :
       {Islands::of_shape("8x8").take(), Islands::of_shape("3+1+4").take(), round_robin(4, 3)}) {
    const WorldPlan operation = plans_on(islands, Collective::AllToAll, Algorithm::Direct);
    std::vector<std::vector<uint16_t>> receivers;  // by rank, in the order of lanes
    for (const Plan& plan : operation.plans) {
      auto& mine = receivers.emplace_back();
      for (const Step& step : plan.steps) {
        const bool sends = step.kind == StepKind::Signal && step.counter == Counter::Data;
        if (sends) mine.push_back(step.peer);
      }
    }
    for (size_t turn = 0; turn + 1 < islands.world(); ++turn) {
      std::vector<uint32_t> hits(islands.world());
      for (const auto& mine : receivers) ++hits[mine[turn]];
      EXPECT_EQ(hits, std::vector<uint32_t>(islands.world(), 1)) << "turn " << turn;
    }
  }
}

}  // namespace
}  // namespace rdmacoll::direct_order_test
