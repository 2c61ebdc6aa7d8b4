// Links on demand: ranks that are not linked when the group is made are once one of them needs the
// other, whatever that is at; and word of a failure comes to all, also through ranks that do
// nothing. In a group of twelve a rank is linked to those at distances of 1, 2 and 4 at first.
#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::on_demand_test {
namespace {

constexpr int kWorld = 12;
constexpr int kFar = 6;  // from rank 0

// Each rank as a thread; the body may end its communicator. All endpoints end together.
void run(const std::function<void(std::shared_ptr<Communicator>&)>& body) {
  ThreadBootstrap bootstrap(kWorld);
  std::barrier done(kWorld);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kWorld; ++rank) {
    threads.emplace_back([&, rank] {
      auto endpoint = Endpoint::open(config_of_environment());
      ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
      auto face = bootstrap.face(rank);
      auto made = endpoint.value()->create_communicator(rank, kWorld, face, kTestTimeoutMs);
      EXPECT_TRUE(made.ok()) << made.status().message();
      if (made.ok()) body(made.value());
      done.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Status end_of(Communicator& communicator, Result<WorkPtr> started) {
  if (!started.ok()) return started.status();
  return communicator.wait(*started.value(), -1, {});
}

TEST(OnDemand, AMessageReachesARankThatComputes) {
  std::latch sent(1);
  run([&](std::shared_ptr<Communicator>& communicator) {
    const int rank = communicator->rank();
    uint64_t value = 0;
    if (rank == 0) {
      EXPECT_EQ(communicator->paths().size(), 6u) << "at 1, 2 and 4, both ways";
      value = 42;
      finish(*communicator, communicator->send({&value, sizeof(value)}, kFar, 1));
      sent.count_down();
      EXPECT_EQ(communicator->paths().size(), 7u);
    } else if (rank == kFar) {
      sent.wait();  // it is in no call while rank 0 sends
      finish(*communicator, communicator->recv({&value, sizeof(value)}, 0, 1));
      EXPECT_EQ(value, 42u);
    }
    finish(*communicator, communicator->barrier());
  });
}

TEST(OnDemand, ARankThatHasLeftTheGroupSaysSo) {
  std::latch left(1), told(1);
  run([&](std::shared_ptr<Communicator>& communicator) {
    const int rank = communicator->rank();
    uint64_t value = 0;
    if (rank == kFar) {
      communicator.reset();
      left.count_down();
      told.wait();  // its process lives
    } else if (rank == 0) {
      left.wait();
      const Status status =
          end_of(*communicator, communicator->send({&value, sizeof(value)}, kFar, 1));
      told.count_down();
      EXPECT_EQ(status.code(), StatusCode::PeerFailed);
      EXPECT_NE(status.message().find("rank 6 is gone (it has left the group)"), std::string::npos)
          << status.message();
      EXPECT_EQ(communicator->lost_ranks(), std::vector<int>{kFar});
    } else {
      told.wait();
    }
  });
}

// Rank 0 waits for a message from anybody; nobody else is in a call.
TEST(OnDemand, IdleRanksPassAFailureOn) {
  std::latch heard(1);
  run([&](std::shared_ptr<Communicator>& communicator) {
    const int rank = communicator->rank();
    uint64_t value = 0;
    if (rank == 0) {
      const Status status =
          end_of(*communicator, communicator->recv({&value, sizeof(value)}, kAnySource, 1));
      heard.count_down();
      EXPECT_EQ(status.code(), StatusCode::PeerFailed);
      EXPECT_NE(status.message().find("the roof is on fire"), std::string::npos)
          << status.message();
    } else {
      if (rank == kFar) communicator->abort("the roof is on fire");
      heard.wait();
    }
  });
}

}  // namespace
}  // namespace rdmacoll::on_demand_test
