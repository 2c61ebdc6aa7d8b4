// Fifo: order, growth in the middle of the ring, and what it lets go of.
#include "csrc/base/fifo.h"

#include <gtest/gtest.h>

#include <memory>

namespace rdmacoll {
namespace {

TEST(FifoTest, KeepsItsOrderWhileItGoesRoundAndGrows) {
  Fifo<int> fifo;
  int pushed = 0, popped = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 7 + round % 5; ++i) fifo.push(pushed++);
    for (int i = 0; i < 6; ++i) ASSERT_EQ(fifo.pop(), popped++);
  }
  while (!fifo.empty()) ASSERT_EQ(fifo.pop(), popped++);
  EXPECT_EQ(popped, pushed);
}

TEST(FifoTest, HoldsNothingThatWasTakenOut) {
  Fifo<std::shared_ptr<int>> fifo;
  const auto value = std::make_shared<int>(1);
  fifo.push(value);
  static_cast<void>(fifo.pop());
  EXPECT_EQ(value.use_count(), 1);
}

}  // namespace
}  // namespace rdmacoll
