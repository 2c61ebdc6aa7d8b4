// The choice of stores: what it learns from the operations that it times, and when it looks again.
#include "csrc/engine/channel/store_choice.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll::store_choice_test {
namespace {

constexpr uint64_t kLarge = 1 << 20;

constexpr uint32_t trials(uint64_t bytes = kLarge) { return 2 * StoreChoice::row(bytes); }
constexpr uint32_t period(uint64_t bytes = kLarge) {
  return StoreChoice::kRows * StoreChoice::row(bytes);
}

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
    for (uint32_t i = 0; i < trials(bytes); ++i) operation(bytes, collective);
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
  for (const Stores stores : {Stores::Cached, Stores::Streamed}) {
    for (uint32_t i = 0; i < StoreChoice::row(kLarge); ++i) EXPECT_EQ(near.operation(), stores);
  }
  EXPECT_EQ(near.operation(), Stores::Cached);
  Machine far;
  far.cached_ns = 500;
  EXPECT_EQ(far.after_trials(), Stores::Streamed);
}

TEST(StoreChoice, FollowsAMachineThatChanges) {
  Machine machine;
  for (uint32_t i = 0; i < period(); ++i) {
    const Stores stores = machine.operation();
    if (i >= trials()) {
      EXPECT_EQ(stores, Stores::Cached);
    }
  }
  machine.cached_ns = 500;  // as when the system moves a rank to a distant core
  EXPECT_EQ(machine.after_trials(), Stores::Streamed);
}

// What was written past the caches is slow to write with ordinary stores, until all of it was once.
TEST(StoreChoice, OperationsAfterAChangeDoNotDecide) {
  for (const uint64_t bytes : {StoreChoice::kBytesMin, kLarge}) {
    Machine machine;
    machine.cached_ns = 500;
    ASSERT_EQ(machine.after_trials(bytes), Stores::Streamed);
    for (uint32_t i = trials(bytes) + 1; i < period(bytes); ++i) machine.operation(bytes);
    machine.cached_ns = 500;
    const uint32_t cold = std::min<uint32_t>(8, kLarge / bytes);  // slots, or as many as it has
    for (uint32_t i = 0; i < cold; ++i) machine.operation(bytes);
    machine.cached_ns = 100;
    for (uint32_t i = cold; i < trials(bytes); ++i) machine.operation(bytes);
    EXPECT_EQ(machine.operation(bytes), Stores::Cached) << bytes;
  }
}

TEST(StoreChoice, OneSlowTrialDoesNotDecide) {
  Machine machine;
  for (uint32_t i = 2; i < StoreChoice::row(kLarge); ++i) machine.operation();
  machine.cached_ns = 10'000;  // another program had the core
  machine.operation();
  machine.cached_ns = 100;
  for (uint32_t i = StoreChoice::row(kLarge) - 1; i < trials(); ++i) machine.operation();
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

TEST(StoreChoice, SizesOfOneKindAreTriedTogether) {
  Machine machine;
  machine.cached_ns = 500;
  const uint64_t sizes[] = {2 * StoreChoice::kBytesMin, 3 * StoreChoice::kBytesMin};
  for (uint32_t i = 0; i < trials(sizes[0]); ++i) machine.operation(sizes[i % 2]);
  for (const uint64_t bytes : sizes) EXPECT_EQ(machine.operation(bytes), Stores::Streamed) << bytes;
}

TEST(StoreChoice, MessagesMayBeTriedSeveralAtOnce) {
  Machine machine;
  machine.cached_ns = 500;
  std::vector<StoreChoice::Use> uses;
  for (uint32_t i = 0; i < trials(); ++i) {
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
}  // namespace rdmacoll::store_choice_test
