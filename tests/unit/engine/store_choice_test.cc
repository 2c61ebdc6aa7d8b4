// The choice of stores: what it learns from the operations that it times, and when it looks again.
#include "csrc/engine/store_choice.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll {
namespace {

constexpr uint64_t kLarge = 1 << 20;

// Operations whose copies take so long.
struct Machine {
  explicit Machine(const std::string& setting = "auto") : choice(setting, clock) {}

  Stores operation(uint64_t bytes = kLarge, Collective collective = Collective::AllReduce,
                   bool in_heap = false) {
    StoreChoice::Use use = choice.begin(collective, bytes, in_heap);
    for (int copies = 0; copies < 3; ++copies) {
      clock.at_ns += 1'000'000;  // waiting counts for nothing
      choice.time(use, [&] { clock.at_ns += ns(use); });
    }
    choice.end(use);
    return use.stores;
  }
  Stores after_trials(uint64_t bytes = kLarge, Collective collective = Collective::AllReduce) {
    for (uint32_t i = 0; i < StoreChoice::kTrials; ++i) operation(bytes, collective);
    return operation(bytes, collective);
  }

  int64_t ns(const StoreChoice::Use& use) const {
    return use.stores == Stores::Cached ? cached_ns : streamed_ns;
  }

  int64_t cached_ns = 100;
  int64_t streamed_ns = 200;
  ManualClock clock;
  StoreChoice choice;
};

TEST(StoreChoice, TriesBothAndKeepsTheQuicker) {
  Machine near;
  EXPECT_EQ(near.operation(), Stores::Cached);
  EXPECT_EQ(near.operation(), Stores::Streamed);
  EXPECT_EQ(near.after_trials(), Stores::Cached);
  Machine far;
  far.cached_ns = 500;
  EXPECT_EQ(far.after_trials(), Stores::Streamed);
}

TEST(StoreChoice, FollowsAMachineThatChanges) {
  Machine machine;
  for (uint32_t i = 0; i < StoreChoice::kPeriod; ++i) {
    const Stores stores = machine.operation();
    if (i >= StoreChoice::kTrials) {
      EXPECT_EQ(stores, Stores::Cached);
    }
  }
  machine.cached_ns = 500;  // as when the system moves a rank to a distant core
  EXPECT_EQ(machine.after_trials(), Stores::Streamed);
}

TEST(StoreChoice, OneSlowTrialDoesNotDecide) {
  Machine machine;
  machine.cached_ns = 10'000;  // pages that were never touched
  machine.operation();
  machine.cached_ns = 100;
  for (uint32_t i = 1; i < StoreChoice::kTrials; ++i) machine.operation();
  EXPECT_EQ(machine.operation(), Stores::Cached);
}

TEST(StoreChoice, EachKindAndSizeForItself) {
  Machine machine;
  machine.cached_ns = 500;
  EXPECT_EQ(machine.after_trials(), Stores::Streamed);
  machine.cached_ns = 100;
  EXPECT_EQ(machine.after_trials(64 * kLarge), Stores::Cached);
  EXPECT_EQ(machine.after_trials(kLarge, Collective::AllGather), Stores::Cached);
  EXPECT_EQ(machine.operation(kLarge, Collective::AllReduce, true), Stores::Cached);
  EXPECT_EQ(machine.operation(kLarge + 4096), Stores::Streamed) << "nearly as large";
  EXPECT_EQ(machine.after_trials(uint64_t{1} << 45), Stores::Cached);
  EXPECT_EQ(machine.operation(StoreChoice::kBytesMin - 1), Stores::Cached);
}

TEST(StoreChoice, MessagesMayBeTriedSeveralAtOnce) {
  Machine machine;
  machine.cached_ns = 500;
  std::vector<StoreChoice::Use> uses;
  for (uint32_t i = 0; i < StoreChoice::kTrials; ++i) {
    uses.push_back(machine.choice.begin_message(kLarge));
  }
  for (StoreChoice::Use& use : uses) {
    machine.choice.time(use, [&] { machine.clock.at_ns += machine.ns(use); });
  }
  for (const StoreChoice::Use& use : uses) machine.choice.end(use);
  EXPECT_EQ(machine.choice.begin_message(kLarge).stores, Stores::Streamed);
  EXPECT_EQ(machine.operation(), Stores::Cached) << "collectives are of another kind";
}

TEST(StoreChoice, ASettingIsObeyed) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Machine("cached").after_trials(), Stores::Cached);
    EXPECT_EQ(Machine("streamed").operation(8), Stores::Streamed);
  }
}

}  // namespace
}  // namespace rdmacoll
