// Shrinking over shared memory: those that stay make a group over the links of the old one.
#include "csrc/engine/shrinking.h"

#include <barrier>
#include <chrono>
#include <tuple>

#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::shrinking_test {
namespace {

using CommunicatorPtr = std::shared_ptr<Communicator>;

Result<CommunicatorPtr> shrunk(Communicator& c, const std::vector<int>& excluded, int64_t ms) {
  auto smaller = c.shrink(excluded, ms, {});
  if (!smaller.ok()) return smaller.status();
  return std::move(smaller.value().communicator);
}

// A rank that can go before the others: it leaves with its endpoint, as a process that ends.
struct Rank {
  std::shared_ptr<Endpoint> endpoint;
  CommunicatorPtr communicator;

  void go() {
    communicator.reset();
    endpoint.reset();
  }
  Result<CommunicatorPtr> shrink(std::vector<int> excluded, int64_t timeout_ms = kTestTimeoutMs) {
    return shrunk(*communicator, excluded, timeout_ms);
  }
};

void run(int size, const std::function<void(int, Rank&)>& body) {
  ThreadBootstrap bootstrap(size);
  std::barrier done(size);
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      Rank rank;
      {
        rank.endpoint = Endpoint::open(config_of_environment()).take();
        auto face = bootstrap.face(r);
        auto made = rank.endpoint->create_communicator(r, size, face, kTestTimeoutMs);
        EXPECT_TRUE(made.ok()) << made.status().message();
        rank.communicator = made.take();
      }
      done.arrive_and_wait();  // nobody goes while others are still opening its memory
      body(r, rank);
      done.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Exact sums, small and large, and who is who.
void expect_works(Communicator& c, int rank, int size) {
  ASSERT_EQ(c.rank(), rank);
  ASSERT_EQ(c.size(), size);
  for (const uint64_t count : {1u, 1000u, 300'000u}) {
    std::vector<float> data(count, static_cast<float>(rank + 1));
    finish(c, c.all_reduce(data.data(), data.data(), count, DType::Float32, ReduceOp::Sum));
    ASSERT_EQ(data, std::vector<float>(count, static_cast<float>(size * (size + 1) / 2)));
  }
}

TEST(Shrinking, OfAHealthyGroupExcludesWhomItIsTold) {
  for (const int size : {2, 3, 4, 7}) {
    run(size, [&](int r, Rank& rank) {
      if (r == 0) return;  // excluded; it need not even notice
      auto shrunk = rank.shrink({0});
      ASSERT_TRUE(shrunk.ok()) << shrunk.status().message();
      rank.communicator.reset();  // the old one may go at once
      expect_works(*shrunk.value(), r - 1, size - 1);
      finish(*shrunk.value(), shrunk.value()->barrier());
    });
  }
}

TEST(Shrinking, WhatNobodyNamedIsFoundGone) {
  for (const int size : {2, 3, 4, 7}) {
    run(size, [&](int r, Rank& rank) {
      if (r == 1) return rank.go();
      const Status status = rank.communicator->wait(*rank.communicator->barrier().value(), -1, {});
      ASSERT_FALSE(status.ok());
      ASSERT_EQ(rank.communicator->lost_ranks(), std::vector<int>{1}) << status.message();
      auto shrunk = rank.shrink({});
      ASSERT_TRUE(shrunk.ok()) << shrunk.status().message();
      expect_works(*shrunk.value(), r == 0 ? 0 : r - 1, size - 1);
      finish(*shrunk.value(), shrunk.value()->barrier());
    });
  }
}

TEST(Shrinking, TwiceInARowDownToOne) {
  run(3, [&](int r, Rank& rank) {
    if (r == 1) return rank.go();
    auto two = rank.shrink({});
    ASSERT_TRUE(two.ok()) << two.status().message();
    rank.communicator = two.take();
    expect_works(*rank.communicator, r == 0 ? 0 : 1, 2);
    finish(*rank.communicator, rank.communicator->barrier());
    if (r == 2) return rank.go();
    auto one = rank.shrink({});
    ASSERT_TRUE(one.ok()) << one.status().message();
    expect_works(*one.value(), 0, 1);
  });
}

TEST(Shrinking, TheListsAreJoined) {
  run(4, [&](int r, Rank& rank) {
    if (r >= 2) return;
    auto shrunk = rank.shrink({r == 0 ? 2 : 3});
    ASSERT_TRUE(shrunk.ok()) << shrunk.status().message();
    expect_works(*shrunk.value(), r, 2);
    finish(*shrunk.value(), shrunk.value()->barrier());
  });
}

TEST(Shrinking, WhoIsExcludedIsToldSo) {
  run(3, [&](int r, Rank& rank) {
    auto shrunk = rank.shrink(r == 2 ? std::vector<int>{} : std::vector<int>{2});
    if (r == 2) {
      ASSERT_EQ(shrunk.status().code(), StatusCode::Aborted);
      ASSERT_NE(shrunk.status().message().find("without this rank"), std::string::npos);
    } else {
      ASSERT_TRUE(shrunk.ok()) << shrunk.status().message();
      expect_works(*shrunk.value(), r, 2);
      finish(*shrunk.value(), shrunk.value()->barrier());
    }
  });
}

TEST(Shrinking, WhoIsExcludedIsToldSoAlsoOnceTheOthersHaveLeft) {
  std::barrier left(3);
  run(3, [&](int r, Rank& rank) {
    if (r < 2) {
      auto shrunk = rank.shrink({2});
      ASSERT_TRUE(shrunk.ok()) << shrunk.status().message();
      rank.communicator.reset();
      left.arrive_and_wait();
    } else {
      left.arrive_and_wait();
      ASSERT_EQ(rank.shrink({}).status().code(), StatusCode::Aborted);
    }
  });
}

TEST(Shrinking, WhoIsLateIsNamedAndMayStillCome) {
  run(3, [&](int r, Rank& rank) {
    if (r == 2) std::this_thread::sleep_for(std::chrono::milliseconds(400));
    auto shrunk = rank.shrink({}, r == 0 ? 100 : kTestTimeoutMs);
    if (r == 0) {
      ASSERT_EQ(shrunk.status().code(), StatusCode::Timeout);
      ASSERT_NE(shrunk.status().message().find("rank 2 has not called it"), std::string::npos)
          << shrunk.status().message();
      shrunk = rank.shrink({});
    }
    ASSERT_TRUE(shrunk.ok()) << shrunk.status().message();
    expect_works(*shrunk.value(), r, 3);
    finish(*shrunk.value(), shrunk.value()->barrier());
  });
}

// Ranks go at any moment of it; the others end up together whatever they had said before.
TEST(Shrinking, WhoGoesMeanwhileIsLeftOutOrMissedLater) {
  for (int delay_us = 0; delay_us < 2000; delay_us += 100) {
    run(4, [&](int r, Rank& rank) {
      if (r == 3) {
        const auto interrupt_at =
            std::chrono::steady_clock::now() + std::chrono::microseconds(delay_us);
        std::ignore = rank.communicator->shrink({}, kTestTimeoutMs, [&] {
          const bool now = std::chrono::steady_clock::now() >= interrupt_at;
          return now ? Status(StatusCode::Interrupted, "it is time to go") : Status();
        });
        return rank.go();
      }
      CommunicatorPtr current = rank.communicator;
      while (true) {
        auto smaller = shrunk(*current, {}, kTestTimeoutMs);
        ASSERT_TRUE(smaller.ok()) << smaller.status().message();
        current = smaller.take();
        if (current->size() == 3) break;
        ASSERT_FALSE(current->wait(*current->barrier().value(), -1, {}).ok());
      }
      expect_works(*current, r, 3);
      finish(*current, current->barrier());
    });
  }
}

TEST(Shrinking, BadListsAreRefused) {
  run(2, [&](int r, Rank& rank) {
    for (const int bad : {-1, 2, r}) {
      const Status status = rank.shrink({bad}).status();
      ASSERT_EQ(status.code(), StatusCode::InvalidArgument);
      ASSERT_TRUE(status.message().starts_with("ranks_to_exclude")) << status.message();
    }
  });
}

TEST(Shrinking, AGroupIsShrunkOnce) {
  run(2, [&](int r, Rank& rank) {
    if (r == 1) return;
    ASSERT_TRUE(rank.shrink({1}).ok());
    ASSERT_EQ(rank.shrink({1}).status().code(), StatusCode::InvalidArgument);
  });
}

}  // namespace
}  // namespace rdmacoll::shrinking_test
