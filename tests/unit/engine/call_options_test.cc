// What a call says about itself holds for it alone.
#include <thread>

#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::call_options_test {
namespace {

constexpr int64_t kSoonMs = 50;

TEST(CallOptions, ATimeoutIsOfItsCallAlone) {
  WorldOfThreads(2).run([](Communicator& c) {
    if (c.rank() == 1) return;  // and leaves once rank 0 has, too
    int never = 0, neither = 0;
    const int64_t usual_ms = c.timeout_ms();
    auto patient = c.recv({&never, 4}, 1, 1);
    auto hasty = c.recv({&neither, 4}, 1, 2, {.timeout_ms = kSoonMs});
    ASSERT_TRUE(patient.ok() && hasty.ok());
    EXPECT_EQ(c.timeout_ms(), usual_ms);
    const Status status = c.wait(*hasty.value(), -1, {});
    EXPECT_EQ(status.code(), StatusCode::Timeout) << status.message();
    EXPECT_FALSE(patient.value()->done());
  });
}

TEST(CallOptions, TimeoutsOfOtherThreadsCallsDoNotMix) {
  WorldOfThreads(2).run([](Communicator& c) {
    constexpr int kRounds = 500;
    // One thread's calls may take a minute, the other's no time at all, but there is nothing to
    // wait for in them: if one got the other's timeout, the group would fail.
    const auto exchange = [&c](int32_t tag, int64_t timeout_ms) {
      for (int i = 0; i < kRounds; ++i) {
        int sent = i, received = -1;
        auto recv = c.recv({&received, 4}, 1 - c.rank(), tag, {.timeout_ms = timeout_ms});
        auto send = c.send({&sent, 4}, 1 - c.rank(), tag, {.timeout_ms = timeout_ms});
        ASSERT_TRUE(recv.ok() && send.ok()) << recv.status().message();
        Work* const both[] = {recv.value().get(), send.value().get()};
        ASSERT_TRUE(c.wait_all(both, -1, {}).ok());
        ASSERT_EQ(received, i) << recv.value()->status().message();
      }
    };
    c.set_timeout_ms(1);
    std::thread other([&] { exchange(1, 60'000); });
    exchange(2, 120'000);
    other.join();
    EXPECT_EQ(c.timeout_ms(), 1);
  });
}

TEST(CallOptions, WaitAllEndsWithTheLastWork) {
  WorldOfThreads(2).run([](Communicator& c) {
    constexpr int kWorks = 20;
    std::vector<float> values(kWorks, 1.0f);
    std::vector<WorkPtr> works;
    std::vector<Work*> waited;
    for (float& value : values) {
      works.push_back(
          c.all_reduce(&value, &value, 1, DType::Float32, ReduceOp::Sum, {.waits = true}).take());
      waited.push_back(works.back().get());
    }
    ASSERT_TRUE(c.wait_all(waited, -1, {}).ok());
    for (const WorkPtr& work : works) ASSERT_TRUE(work->done() && work->status().ok());
    ASSERT_EQ(values, std::vector<float>(kWorks, 2.0f));
    ASSERT_TRUE(c.wait_all({}, -1, {}).ok());
  });
}

TEST(CallOptions, WaitAllGivesUpWhereOneIsLate) {
  WorldOfThreads(2).run([](Communicator& c) {
    float value = 1;
    auto work = c.all_reduce(&value, &value, 1, DType::Float32, ReduceOp::Sum);
    ASSERT_TRUE(work.ok());
    int late = 0;
    Result<WorkPtr> message = c.rank() == 0 ? c.recv({&late, 4}, 1, 0) : work;
    Work* const both[] = {work.value().get(), message.value().get()};
    if (c.rank() == 0) {
      EXPECT_EQ(c.wait_all(both, kSoonMs, {}).code(), StatusCode::Timeout);
      EXPECT_FALSE(both[1]->done());
    }
    finish(c, c.barrier());
    const int sent = 7;
    if (c.rank() == 1) finish(c, c.send({&sent, 4}, 0, 0));
    ASSERT_TRUE(c.wait_all(both, -1, {}).ok());
    ASSERT_EQ(late, c.rank() == 0 ? sent : 0);
  });
}

// On one host as on several, where it changes the plan.
TEST(CallOptions, EitherAllSayThatBlocksAreEqualOrNone) {
  WorldOfThreads(3).run([](Communicator& c) {
    std::vector<int> in(3, c.rank()), out(3);
    std::vector<ConstBuffer> inputs;
    std::vector<MutableBuffer> outputs;
    for (size_t r = 0; r < 3; ++r) {
      inputs.push_back({&in[r], sizeof(int)});
      outputs.push_back({&out[r], sizeof(int)});
    }
    finish(c, c.all_to_all(inputs, outputs, {.equal_blocks = true}));
    EXPECT_EQ(out, (std::vector<int>{0, 1, 2}));
    auto work = c.all_to_all(inputs, outputs, {.equal_blocks = c.rank() != 1});
    ASSERT_TRUE(work.ok());
    const Status status = c.wait(*work.value(), -1, {});
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find("in equal blocks"), std::string::npos) << status.message();
  });
}

TEST(CallOptions, EqualBlocksAreEqual) {
  WorldOfThreads(2).run([](Communicator& c) {
    int in[3] = {}, out[3] = {};
    const ConstBuffer inputs[] = {{in, 4}, {in + 1, 8}};
    const MutableBuffer outputs[] = {{out, 4}, {out + 1, 8}};
    const auto refused = [](const Result<WorkPtr>& work, const std::string& why) {
      ASSERT_FALSE(work.ok());
      EXPECT_EQ(work.status().code(), StatusCode::InvalidArgument);
      EXPECT_EQ(work.status().message(), why + "; make them equal, or do not say that all are");
    };
    const CallOptions options{.equal_blocks = true};
    const bool first = c.rank() == 0;
    refused(c.all_to_all(inputs, outputs, options),
            first ? "inputs[1] has 8 bytes, and inputs[0] has 4"
                  : "inputs[0] has 4 bytes, and inputs[1] has 8");
    if (!first) return;
    refused(c.gather({in, 4}, outputs, 0, options), "outputs[1] has 8 bytes, and outputs[0] has 4");
    refused(c.scatter(inputs, {out, 4}, 0, options), "inputs[1] has 8 bytes, and inputs[0] has 4");
  });
}

}  // namespace
}  // namespace rdmacoll::call_options_test
