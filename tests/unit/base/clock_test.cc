// Deadlines on a clock that the test moves, and the steady clock.
#include "csrc/base/clock.h"

#include <gtest/gtest.h>

namespace rdmacoll::clock_test {
namespace {

class HandClock final : public Clock {
 public:
  int64_t now_ns() const override { return at_ns; }
  int64_t at_ns = 5'000'000'000;
};

TEST(Deadline, PassesWhenItsTimeHasCome) {
  HandClock clock;
  const Deadline deadline = Deadline::after_ms(clock, 10);
  EXPECT_FALSE(deadline.passed(clock));
  clock.at_ns += 10'000'000 - 1;
  EXPECT_FALSE(deadline.passed(clock));
  clock.at_ns += 1;
  EXPECT_TRUE(deadline.passed(clock));
}

TEST(Deadline, WhatIsLeftRoundsUpAndEndsAtZero) {
  HandClock clock;
  const Deadline deadline = Deadline::after_ms(clock, 10);
  EXPECT_EQ(deadline.left_ms(clock), 10);
  clock.at_ns += 1;
  EXPECT_EQ(deadline.left_ms(clock), 10);  // a sleeper for 9 would wake too early and spin
  clock.at_ns += 10'000'000 - 2;
  EXPECT_EQ(deadline.left_ms(clock), 1);
  clock.at_ns += 1;
  EXPECT_EQ(deadline.left_ms(clock), 0);
  clock.at_ns += 1'000'000'000;
  EXPECT_EQ(deadline.left_ms(clock), 0);
}

TEST(Deadline, OfNoTimeHasPassed) {
  const HandClock clock;
  EXPECT_TRUE(Deadline::after_ms(clock, 0).passed(clock));
}

TEST(SteadyClock, NeverGoesBack) {
  const SteadyClock clock;
  int64_t last_ns = clock.now_ns();
  for (int i = 0; i < 1000; ++i) {
    const int64_t now_ns = clock.now_ns();
    ASSERT_GE(now_ns, last_ns);
    last_ns = now_ns;
  }
}

}  // namespace
}  // namespace rdmacoll::clock_test
