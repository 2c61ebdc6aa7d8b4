// What an error says of every rank: who was in what, who is missing, who disagrees.
#include "csrc/engine/failure/failure_report.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::failure_report_test {
namespace {

constexpr int64_t kTimeoutMs = 300;

WorkPtr all_reduce(Communicator& c, std::vector<float>& data) {
  auto work = c.all_reduce(data.data(), data.data(), data.size(), DType::Float32, ReduceOp::Sum);
  EXPECT_TRUE(work.ok()) << work.status().message();
  return work.take();
}

void expect_says(const Status& status, const std::string& text) {
  EXPECT_NE(status.message().find(text), std::string::npos) << text << "\n" << status.message();
}

TEST(FailureReport, RanksInTheSameShareALine) {
  FailureReport report;
  for (const uint32_t rank : {0, 1, 2, 5}) report.add(rank, "in x", (rank + 1) * 100'000'000);
  report.add(3, "is gone");
  report.add(7, "in x");
  report.add(8, "in x");
  EXPECT_EQ(report.text(), "\n  ranks 0-2, 5, 7, 8: in x, for 0.6 s\n  rank 3: is gone");
}

TEST(FailureReport, IsShortWhereAllDiffer) {
  FailureReport report;
  for (uint32_t rank = 0; rank < 100; ++rank) report.add(rank, "in #" + std::to_string(rank));
  const std::string text = report.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 17);
  EXPECT_TRUE(text.ends_with("and 84 more"));
}

// Ranks 0 and 1 wait in an all_reduce, rank 2 in a recv, rank 3 comes to nothing.
TEST(FailureReport, ATimeoutSaysWhatEveryRankWasIn) {
  std::atomic<int> ended{0};
  WorldOfThreads(4).run([&](Communicator& c) {
    std::vector<float> data(100);
    int value = 0;
    finish(c, c.barrier());
    c.set_timeout_ms(c.rank() == 0 ? kTimeoutMs : kTestTimeoutMs);
    WorkPtr work;
    if (c.rank() < 2) work = all_reduce(c, data);
    if (c.rank() == 2) work = c.recv({&value, sizeof(value)}, 3, 7).take();
    while (c.rank() == 3 && ended < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (c.rank() == 3) return;
    const Status status = c.wait(*work, -1, {});
    ++ended;
    ASSERT_EQ(status.code(), c.rank() == 0 ? StatusCode::Timeout : StatusCode::PeerFailed);
    expect_says(status, "rank 3: has ended barrier #1 (0 bytes, dissemination)");
    if (c.rank() != 0) {
      expect_says(status, "gave the group up, in all_reduce #2 (400 bytes, Float32, Sum");
      return;
    }
    expect_says(status, "waits for rank(s) 2, 3");
    expect_says(status, "ranks 0, 1: in all_reduce #2 (400 bytes, Float32, Sum, one_shot), for ");
    expect_says(status, "rank 2: has ended barrier #1");
    expect_says(status, "has not called #2, in recv of 4 bytes from rank 3 with tag 7, for ");
  });
}

TEST(FailureReport, WhoHasCalledNothingIsNamed) {
  std::atomic<bool> over{false};
  WorldOfThreads(2).run([&](Communicator& c) {
    while (c.rank() == 1 && !over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (c.rank() == 1) return;
    std::vector<float> data(100);
    c.set_timeout_ms(kTimeoutMs);
    const Status status = c.wait(*all_reduce(c, data), -1, {});
    over = true;
    expect_says(status, "rank 1: has called nothing yet");
  });
}

TEST(FailureReport, AMismatchSaysWhoCalledWhat) {
  WorldOfThreads(3).run([](Communicator& c) {
    std::vector<float> data(100), out(100);
    finish(c, c.barrier());
    // Rank 1's contribution to a reduce needs no answer: it ends well.
    const WorkPtr work =
        c.rank() == 1
            ? c.reduce(data.data(), out.data(), 100, DType::Float32, ReduceOp::Max, 2).take()
            : all_reduce(c, data);
    const Status status = c.wait(*work, -1, {});
    if (c.rank() == 1) {
      ASSERT_TRUE(!status.ok() || !c.wait(*c.barrier().value(), -1, {}).ok());
      return;
    }
    ASSERT_FALSE(status.ok());
    expect_says(status, "all_reduce #2 (400 bytes, Float32, Sum, one_shot)");
    expect_says(status, "reduce #2 (400 bytes, Float32, Max, root 2, one_shot)");
  });
}

TEST(FailureReport, WhatARankHadCalledBeforeItWentOnIsKnown) {
  WorldOfThreads(2).run([](Communicator& c) {
    std::vector<float> data(8);
    int32_t value = 0;
    if (c.rank() == 0) {  // sends, and is through
      finish(c, c.broadcast(data.data(), 32, 0));
      const WorkPtr barrier = c.barrier().take();
      finish(c, c.send({&value, 4}, 1, 0));  // leaves when the barrier has begun
      ASSERT_FALSE(c.wait(*barrier, -1, {}).ok());
      return;
    }
    finish(c, c.recv({&value, 4}, 0, 0));
    const Status status = c.wait(*all_reduce(c, data), -1, {});
    ASSERT_EQ(status.code(), StatusCode::Mismatch);
    // Perhaps behind "gave the group up": rank 0 may see the mismatch first.
    expect_says(status,
                "had called broadcast #1 (32 bytes, root 0, one_shot), in barrier #2 (0 bytes, "
                "dissemination)");
    expect_says(status, "rank 1: in all_reduce #1 (32 bytes, Float32, Sum, one_shot)");
  });
}

TEST(FailureReport, WhoHasLeftIsNamedWithTheLastCall) {
  WorldOfThreads(3).run([](Communicator& c) {
    finish(c, c.barrier());
    if (c.rank() == 2) return c.leave("going home");
    std::vector<float> data(100);
    const Status status = c.wait(*all_reduce(c, data), -1, {});
    ASSERT_EQ(status.code(), StatusCode::PeerFailed);
    expect_says(status, "rank 2: has left the group, ");
  });
}

}  // namespace
}  // namespace rdmacoll::failure_report_test
