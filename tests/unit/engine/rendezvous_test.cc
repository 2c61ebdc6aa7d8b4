// How ranks come together: late, and not at all. Floor: tests.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "csrc/engine/group_setup.h"
#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll {
namespace {

TEST(Rendezvous, ARankMayComeLaterThanAConnectionMayTake) {
  constexpr int kWorld = 3;
  Config config = config_of_environment();
  config.connect_timeout_ms = 1000;
  ThreadBootstrap bootstrap(kWorld);
  std::barrier done(kWorld);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kWorld; ++rank) {
    threads.emplace_back([&, rank] {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      auto endpoint = Endpoint::open(config);
      ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
      auto face = bootstrap.face(rank);
      auto made = endpoint.value()->create_communicator(rank, kWorld, face, kTestTimeoutMs);
      EXPECT_TRUE(made.ok()) << made.status().message();
      done.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Rendezvous, ARankThatCannotTakePartTellsTheOthersWhy) {
  constexpr int kWorld = 3;
  ThreadBootstrap bootstrap(kWorld);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kWorld; ++rank) {
    threads.emplace_back([&, rank] {
      auto face = bootstrap.face(rank);
      if (rank == 1) {
        decline_group(face, Status(StatusCode::Unsupported, "there is no device here"));
        return;
      }
      auto endpoint = Endpoint::open(config_of_environment());
      ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
      auto made = endpoint.value()->create_communicator(rank, kWorld, face, kTestTimeoutMs);
      ASSERT_FALSE(made.ok());
      EXPECT_EQ(made.status().code(), StatusCode::PeerFailed);
      EXPECT_EQ(made.status().message(),
                "cannot reach rank 1: it could not take part: there is no device here");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rdmacoll
