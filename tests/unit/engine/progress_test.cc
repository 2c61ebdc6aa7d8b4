// Who drives: waits from several threads, callbacks that come back in, nobody waiting at all.
#include <atomic>
#include <future>
#include <stdexcept>

#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::progress_test {
namespace {

WorkPtr sum(Communicator& c, float* value, const CallOptions& options = {}) {
  auto work = c.all_reduce(value, value, 1, DType::Float32, ReduceOp::Sum, options);
  EXPECT_TRUE(work.ok()) << work.status().message();
  return work.take();
}

TEST(Progress, TheBackgroundThreadFinishesWhatNobodyWaitsFor) {
  WorldOfThreads(3).run([](Communicator& c) {
    for (int i = 0; i < 20; ++i) {
      float value = 1;
      std::promise<Status> done;
      sum(c, &value)->on_done([&](const Status& status) { done.set_value(status); });
      auto future = done.get_future();
      ASSERT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready);
      ASSERT_TRUE(future.get().ok());
      ASSERT_EQ(value, 3.0f);
    }
  });
}

// A thread that waiters have spared for a while still comes for what nobody waits for.
TEST(Progress, WhatNobodyWaitsForEndsAmongWaitsToo) {
  WorldOfThreads(2).run([](Communicator& c) {
    for (int i = 0; i < 300; ++i) {
      float waited = 1, left = 1;
      for (int k = 0; k < i % 4; ++k) ASSERT_TRUE(c.wait(*sum(c, &waited), -1, {}).ok());
      std::promise<void> done;
      sum(c, &left)->on_done([&](const Status&) { done.set_value(); });
      auto future = done.get_future();
      ASSERT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready) << i;
      ASSERT_EQ(left, 2.0f);
    }
  });
}

// The thread that starts an operation drives a round, but may hold a lock that callbacks take.
TEST(Progress, StartingAnOperationRunsNoCallbackOfAnother) {
  constexpr int kTurns = 300;
  std::barrier posted(2);
  WorldOfThreads(2).run([&](Communicator& c) {
    std::vector<int> sent(kTurns), got(kTurns, -1);
    for (int i = 0; i < kTurns; ++i) {
      sent[i] = i;
      std::promise<std::thread::id> done;
      auto received = c.recv({&got[i], sizeof(int)}, 1 - c.rank(), 0);
      ASSERT_TRUE(received.ok());
      received.value()->on_done([&](const Status&) { done.set_value(std::this_thread::get_id()); });
      posted.arrive_and_wait();
      ASSERT_TRUE(c.send({&sent[i], sizeof(int)}, 1 - c.rank(), 0).ok());  // may find the other's
      auto future = done.get_future();
      ASSERT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready) << i;
      EXPECT_NE(future.get(), std::this_thread::get_id());
    }
    EXPECT_EQ(got, sent);
  });
}

TEST(Progress, CallbacksMayStartAndWait) {
  WorldOfThreads(2).run([](Communicator& c) {
    float first = 1, second = 1;
    std::promise<void> done;
    sum(c, &first)->on_done([&](const Status&) {
      EXPECT_TRUE(c.wait(*sum(c, &second), -1, {}).ok());
      done.set_value();
    });
    auto future = done.get_future();
    ASSERT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    ASSERT_EQ(first + second, 4.0f);
  });
}

// As PowerSGD's communication hook does it: the callback of one operation starts the next and
// blocks until that one's callback has run.
void chain(Communicator& c, int depth, std::promise<void>& done) {
  auto value = std::make_shared<float>(1.0f);
  sum(c, value.get())->on_done([&c, depth, value, &done](const Status& status) {
    EXPECT_TRUE(status.ok() && *value == 2.0f);
    if (depth > 0) {
      std::promise<void> inner;
      chain(c, depth - 1, inner);
      inner.get_future().wait();
    }
    done.set_value();
  });
}

TEST(Progress, CallbacksMayBlockOnCallbacks) {
  WorldOfThreads(2).run([](Communicator& c) {
    std::promise<void> done;
    chain(c, 5, done);
    auto future = done.get_future();
    ASSERT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  });
}

TEST(Progress, ABlockedCallbackInAWaitersThreadHoldsUpNobody) {
  WorldOfThreads(2).run([](Communicator& c) {
    float first = 1;
    std::promise<void> done, ended;
    const WorkPtr work = sum(c, &first, {.waits = true});
    work->on_done([&](const Status&) {
      chain(c, 2, done);
      done.get_future().wait();
      ended.set_value();
    });
    ASSERT_TRUE(c.wait(*work, -1, {}).ok());
    ended.get_future().wait();  // another thread may be in it: the first to see the operation's end
  });
}

TEST(Progress, SeveralThreadsWaitForDifferentWorks) {
  WorldOfThreads(2).run([](Communicator& c) {
    constexpr int kWorks = 50;
    std::vector<float> values(kWorks, 1.0f);
    std::vector<WorkPtr> works;
    for (float& value : values) works.push_back(sum(c, &value));
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int i = t; i < kWorks; i += 3) EXPECT_TRUE(c.wait(*works[i], -1, {}).ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(values, std::vector<float>(kWorks, 2.0f));
  });
}

TEST(Progress, AWaitInOneGroupDoesNotHoldUpAnother) {
  constexpr int kWorld = 2;
  ThreadBootstrap first(kWorld), second(kWorld);
  std::barrier done(kWorld);
  const auto body = [&](int rank) {
    auto endpoint = Endpoint::open(config_of_environment());
    auto a = first.face(rank), b = second.face(rank);
    auto one = endpoint.value()->create_communicator(rank, kWorld, a, kTestTimeoutMs);
    auto two = endpoint.value()->create_communicator(rank, kWorld, b, kTestTimeoutMs);
    ASSERT_TRUE(one.ok() && two.ok());
    // Opposite orders: each rank's first wait needs the other's second start.
    float x = 1, y = 1;
    const WorkPtr works[] = {sum(*one.value(), &x), sum(*two.value(), &y)};
    const int begin = rank;
    EXPECT_TRUE(one.value()->wait(*works[begin], -1, {}).ok());
    EXPECT_TRUE(one.value()->wait(*works[1 - begin], -1, {}).ok());
    EXPECT_EQ(x + y, 4.0f);
    // A group can be left while another thread waits in the other one.
    float z = 1;
    std::thread waiter;
    if (rank == 0) {
      waiter =
          std::thread([&] { EXPECT_TRUE(one.value()->wait(*sum(*one.value(), &z), -1, {}).ok()); });
      two = Status(StatusCode::Aborted, "left");
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_TRUE(one.value()->wait(*sum(*one.value(), &z), -1, {}).ok());
    }
    if (waiter.joinable()) waiter.join();
    EXPECT_EQ(z, 2.0f);
    done.arrive_and_wait();
  };
  std::thread other([&] { body(1); });
  body(0);
  other.join();
}

// Otherwise the callbacks behind it would never run, and who waits for them would hang.
TEST(ProgressDeathTest, ACallbackThatThrowsEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto body = [](Communicator& c) {
    int value = 5;
    if (c.rank() == 1) {
      finish(c, c.barrier());
      finish(c, c.send({&value, 4}, 0, 0));
      return;
    }
    auto received = c.recv({&value, 4}, 1, 0);
    received.value()->on_done([](const Status&) { throw std::runtime_error("thrown by mine"); });
    finish(c, c.barrier());
    try {
      static_cast<void>(c.wait(*received.value(), -1, {}));
    } catch (const std::runtime_error&) {
    }
  };
  EXPECT_DEATH(WorldOfThreads(2).run(body), "thrown by mine");
}

}  // namespace
}  // namespace rdmacoll::progress_test
