// DriverRole: one thread at a time has it, and whoever wants it gets it. In debug builds (those
// with sanitizers) what belongs to the driver ends the process where another thread calls it.
#include "csrc/engine/drive/driver_role.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "csrc/engine/drive/driven.h"
#include "csrc/engine/drive/driver.h"

namespace rdmacoll::driver_role_test {
namespace {

const auto kNothingLeft = [] { return false; };

struct DriverRoleTest : testing::Test {
  DriverRole role{WakeFd::create().take()};
};

TEST_F(DriverRoleTest, HasOneHolder) {
  ASSERT_TRUE(role.try_take());
  std::thread([&] { EXPECT_FALSE(role.try_take()); }).join();
  role.free(kNothingLeft);
  std::thread([&] {
    EXPECT_TRUE(role.try_take());
    role.free(kNothingLeft);
  }).join();
  EXPECT_FALSE(role.is_taken());
}

TEST_F(DriverRoleTest, WhoOnlyTriesDoesNotKeepItFromWhoWantsIt) {
  std::atomic<bool> had_it{false};
  ASSERT_TRUE(role.try_take());
  std::thread wants([&] {
    role.take();
    had_it = true;
    role.free(kNothingLeft);
  });
  while (!role.is_requested()) std::this_thread::yield();
  role.free(kNothingLeft);
  while (!had_it) {
    if (role.try_take()) role.free(kNothingLeft);
  }
  wants.join();
}

TEST_F(DriverRoleTest, ManyThreadsTakeItInTurns) {
  uint64_t guarded = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        role.take();
        ++guarded;  // a race without the role: TSan sees it
        role.free(kNothingLeft);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(guarded, 800u);
}

TEST_F(DriverRoleTest, NeedsSomebodyWhereWorkIsLeft) {
  ASSERT_TRUE(role.try_take());
  role.free(kNothingLeft);
  EXPECT_TRUE(role.needs_nobody());
  role.note_work();
  EXPECT_FALSE(role.needs_nobody());
  role.add_waiter();
  EXPECT_TRUE(role.needs_nobody());  // the waiter drives
  role.add_callback_thread();
  EXPECT_FALSE(role.needs_nobody());  // the waiter may be the one in a callback
  role.remove_callback_thread();
  role.remove_waiter();
}

TEST(SpinTrial, SkipsMoreAndMoreWhereItIsInVain) {
  SpinTrial spin;
  for (const int skipped : {1, 3, 7, 15, 15}) {
    spin.note(true);
    for (int i = 0; i < skipped; ++i) EXPECT_TRUE(spin.skips());
    EXPECT_FALSE(spin.skips());
  }
  spin.note(false);
  EXPECT_FALSE(spin.skips());
}

#ifndef NDEBUG
struct Nothing final : Driven {
  bool advance(std::vector<Completion>&) override {
    check_driver();
    return false;
  }
  void check(std::vector<Completion>&) override {}
  void close(std::vector<Completion>&) override {}
  bool beat() override { return false; }
};

TEST_F(DriverRoleTest, OnlyItsHolderMayDrive) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Nothing nothing;
  std::vector<Completion> finished;
  nothing.advance(finished);  // nobody's so far
  nothing.set_role(role);
  role.take();
  nothing.advance(finished);
  role.free(kNothingLeft);
  EXPECT_DEATH(nothing.advance(finished), "is_mine");
}
#endif

}  // namespace
}  // namespace rdmacoll::driver_role_test
