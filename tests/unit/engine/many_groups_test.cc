// More groups than a process can have at once, one after the other: their ids are reused, and
// nothing of them is left.
#include <array>
#include <fstream>
#include <iterator>

#include "tests/processes/holdings.h"
#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::many_groups_test {
namespace {

// Ids are reused from the first groups on, so a few groups show that. More groups than there are
// ids show that no id is lost. Under sanitizers that takes too long, and shows them no more.
constexpr uint32_t kSome = 300;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint32_t kMany = kSome;
#else
constexpr uint32_t kMany = kMaxRegions + kMaxRegions / 4;
#endif

struct Usage {
  int mappings = 0;
  int descriptors = entries_of("/proc/self/fd");

  static Usage now() {
    Usage held;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) ++held.mappings;
    return held;
  }
};

// Small blocks: only how many there are counts.
Config small_blocks() {
  Config config = config_of_environment();
  config.block_bytes = 64 << 10;
  config.heap_bytes = 0;
  return config;
}

void make_and_destroy(Endpoint& endpoint, ThreadBootstrap& bootstrap, int rank, int world) {
  auto face = bootstrap.face(rank);
  auto made = endpoint.create_communicator(rank, world, face, kTestTimeoutMs);
  ASSERT_TRUE(made.ok()) << made.status().message();
  float value = static_cast<float>(rank + 1);
  finish(*made.value(), made.value()->all_reduce(&value, &value, 1, DType::Float32, ReduceOp::Sum));
  EXPECT_EQ(value, static_cast<float>(world * (world + 1) / 2));
}

// Groups of all ranks, one after the other.
void make_and_destroy_many(int world, uint32_t groups) {
  const Config config = small_blocks();
  ThreadBootstrap bootstrap(world);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      auto endpoint = Endpoint::open(config);
      ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
      Usage early;
      for (uint32_t i = 0; i < groups && !::testing::Test::HasFailure(); ++i) {
        make_and_destroy(*endpoint.value(), bootstrap, rank, world);
        if (i == 100) early = Usage::now();
      }
      const Usage late = Usage::now();
      // The ranks are not in step, so a few groups more or less exist at either time. And a
      // sanitizer maps memory of its own.
      EXPECT_LE(late.mappings, early.mappings + 64);
      EXPECT_LE(late.descriptors, early.descriptors + 16);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ManyGroups, OfTwoRanksOneAfterTheOther) { make_and_destroy_many(2, kMany); }
TEST(ManyGroups, OfThreeRanksOneAfterTheOther) { make_and_destroy_many(3, kSome); }

// Each rank is in groups with each of the others, so that ids are given back in another order on
// every rank; one group per pair lives on for a while.
TEST(ManyGroups, ThatOverlap) {
  constexpr int kRanks = 3;
  const Config config = small_blocks();
  std::array<ThreadBootstrap, kRanks> pairs{ThreadBootstrap(2), ThreadBootstrap(2),
                                            ThreadBootstrap(2)};  // all but that rank
  std::vector<std::thread> threads;
  for (int me = 0; me < kRanks; ++me) {
    threads.emplace_back([&, me] {
      auto endpoint = Endpoint::open(config);
      ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
      std::array<std::shared_ptr<Communicator>, kRanks> kept;
      for (uint32_t i = 0; i < kSome && !::testing::Test::HasFailure(); ++i) {
        for (int without = 0; without < kRanks; ++without) {
          if (without == me) continue;
          const int rank = me > without ? me - 1 : me;
          auto face = pairs[static_cast<size_t>(without)].face(rank);
          auto made = endpoint.value()->create_communicator(rank, 2, face, kTestTimeoutMs);
          ASSERT_TRUE(made.ok()) << made.status().message();
          if (i % 7 == static_cast<uint32_t>(without))
            kept[static_cast<size_t>(without)] = made.take();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// One rank says that it has other settings: nobody gets the group, and its id is free again.
TEST(ManyGroups, ThatCouldNotBeMade) {
  ThreadBootstrap bootstrap(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      auto endpoint = Endpoint::open(small_blocks());
      ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
      make_and_destroy(*endpoint.value(), bootstrap, rank, 2);
      for (uint32_t i = 0; i < kSome; ++i) {
        auto face = bootstrap.face(rank);
        const auto made = endpoint.value()->create_communicator(rank, 2, face, kTestTimeoutMs,
                                                                rank == 0 ? "ring" : "");
        ASSERT_EQ(made.status().code(), StatusCode::Mismatch) << made.status().message();
      }
      make_and_destroy(*endpoint.value(), bootstrap, rank, 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rdmacoll::many_groups_test
