// How ranks come together: late, at odds, and not at all. Floor: tests.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "csrc/engine/connect/group_setup.h"
#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::rendezvous_test {
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

// What each of two ranks is told when they make a group with these settings.
std::vector<std::string> refusals(const std::vector<Config>& configs,
                                  const std::vector<std::string>& algorithms) {
  ThreadBootstrap bootstrap(2);
  std::barrier done(2);
  std::vector<std::string> messages(2);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      auto endpoint = Endpoint::open(configs[rank]);
      ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
      auto face = bootstrap.face(static_cast<int>(rank));
      auto made = endpoint.value()->create_communicator(static_cast<int>(rank), 2, face,
                                                        kTestTimeoutMs, algorithms[rank]);
      if (!made.ok()) messages[rank] = made.status().message();
      done.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return messages;
}

TEST(Rendezvous, RanksMustAgreeOnAlgorithmAndTable) {
  const Config plain = config_of_environment();
  Config ring = plain, tuned = plain;
  ring.algorithm = "ring";
  tuned.tuning.text = "all_reduce mapped world=2 up_to=any ring\n";
  for (const auto& messages :
       {refusals({plain, tuned}, {"", ""}), refusals({plain, ring}, {"", ""}),
        refusals({plain, plain}, {"ring", ""}), refusals({plain, plain}, {"ring", "tree"})}) {
    for (size_t rank = 0; rank < 2; ++rank) {
      const std::string who = "rank " + std::to_string(1 - rank) + " runs with another";
      EXPECT_TRUE(messages[rank].starts_with(who)) << messages[rank];
      EXPECT_NE(messages[rank].find("Options(algorithm=...)"), std::string::npos);
      EXPECT_NE(messages[rank].find("RDMACOLL_TUNING"), std::string::npos);
    }
  }
  const std::vector<std::string> agreed(2);
  EXPECT_EQ(refusals({tuned, tuned}, {"", ""}), agreed);
  EXPECT_EQ(refusals({ring, plain}, {"", "ring"}), agreed);
}

TEST(Rendezvous, RanksMustHaveTheSameSecret) {
  Config one = config_of_environment(), other = one, none = one;
  one.secret.text = "the secret of the job";
  other.secret.text = "the secret of another";
  for (const auto& messages : {refusals({one, other}, {"", ""}), refusals({one, none}, {"", ""})}) {
    for (const std::string& message : messages) {
      EXPECT_NE(message.find("secret"), std::string::npos) << message;
      EXPECT_NE(message.find("RDMACOLL_SECRET_FILE"), std::string::npos) << message;
    }
  }
  EXPECT_EQ(refusals({one, one}, {"", ""}), std::vector<std::string>(2));
}

TEST(Rendezvous, ATableThatDoesNotParseOpensNothing) {
  Config config = config_of_environment();
  config.tuning.path = "here/table";
  config.tuning.text = "\nall_reduce mapped world=2 up_to=any rings\n";
  const auto endpoint = Endpoint::open(config);
  ASSERT_FALSE(endpoint.ok());
  EXPECT_EQ(endpoint.status().code(), StatusCode::InvalidArgument);
  EXPECT_TRUE(endpoint.status().message().starts_with(
      "RDMACOLL_TUNING='here/table', line 2: 'rings' is no algorithm of all_reduce"))
      << endpoint.status().message();
}

TEST(Rendezvous, AGroupMayHaveAnAlgorithmOfItsOwn) {
  Config config = config_of_environment();
  config.algorithm = "tree";
  auto endpoint = Endpoint::open(config);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
  const auto takes = [&](const std::string& algorithm) {
    ThreadBootstrap bootstrap(1);
    auto face = bootstrap.face(0);
    auto made = endpoint.value()->create_communicator(0, 1, face, kTestTimeoutMs, algorithm);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? made.value()->algorithm_for(Collective::AllReduce, 4) : Algorithm::Direct;
  };
  EXPECT_EQ(takes(""), Algorithm::Tree);
  EXPECT_EQ(takes("ring"), Algorithm::Ring);
  EXPECT_NE(takes("auto"), Algorithm::Tree);
  ThreadBootstrap bootstrap(1);
  auto face = bootstrap.face(0);
  auto refused = endpoint.value()->create_communicator(0, 1, face, kTestTimeoutMs, "rings");
  EXPECT_EQ(refused.status().code(), StatusCode::InvalidArgument);
}

}  // namespace
}  // namespace rdmacoll::rendezvous_test
