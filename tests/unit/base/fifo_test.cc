// Fifo: order, growth in the middle of the ring, and what it lets go of.
#include "csrc/base/fifo.h"

#include <gtest/gtest.h>

#include <memory>

namespace rdmacoll::fifo_test {
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

TEST(FifoTest, TakesOutOfTheMiddle) {
  for (size_t index = 0; index < 6; ++index) {
    Fifo<int> fifo;
    for (int i = 0; i < 5; ++i) fifo.push(-1);
    for (int i = 0; i < 5; ++i) static_cast<void>(fifo.pop());
    for (int i = 0; i < 6; ++i) fifo.push(i);  // around the end of the ring
    ASSERT_EQ(fifo.take_out(index), static_cast<int>(index));
    ASSERT_EQ(fifo.size(), 5u);
    for (int i = 0; i < 6; ++i) {
      if (i == static_cast<int>(index)) continue;
      ASSERT_EQ(fifo.pop(), i);
    }
  }
}

}  // namespace
}  // namespace rdmacoll::fifo_test
