// Workers and servers that are processes (threads here), over every transport: what is pushed is
// what is pulled, also where rings are full, and whoever leaves holds nobody up.
#include "tests/unit/ps/rings.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "csrc/transport/shm/transport.h"
#include "csrc/transport/tcp/transport.h"

namespace rdmacoll::ps::rings_test {
namespace {

TEST_P(Rings, AddUpWhatAllWorkersPush) {
  constexpr int kWorkers = 3;
  constexpr uint64_t kElements = 6 * kShardElements + 11;
  constexpr int kRounds = 5;
  std::barrier<> pushed(kWorkers);
  run(1 + kWorkers, [&](RemoteProcess& p) {
    if (p.rank() == 0) return serve(p, kWorkers);
    auto host = call(p);
    const Limit limit = host->limit(kSoonMs, {});
    ASSERT_TRUE(host->client().create(1, {.name = "w", .elements = kElements}).ok());
    std::vector<float> values(kElements);
    std::iota(values.begin(), values.end(), static_cast<float>(p.rank()));
    std::vector<BatchPtr> batches;
    for (int round = 0; round < kRounds; ++round) {
      batches.push_back(host->client().push_range(1, 0, values, PushAs::Gradient, limit));
    }
    for (const BatchPtr& batch : batches) EXPECT_TRUE(host->client().wait(batch, limit).ok());
    pushed.arrive_and_wait();
    std::vector<float> pulled(kElements);
    good(*host, host->client().pull_range(1, 0, pulled, limit));
    for (uint64_t i = 0; i < kElements; i += 1001) {
      float expected = 0;
      for (int worker = 1; worker <= kWorkers; ++worker) {
        expected += kRounds * static_cast<float>(i + worker);
      }
      ASSERT_FLOAT_EQ(pulled[i], expected) << i;
    }
    leave(std::move(host));
  });
}

TEST_P(Rings, HaveRoomForManyRows) {
  constexpr uint64_t kDim = 64;
  constexpr uint64_t kRows = 50'000;
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 0) return serve(p, 1);
    auto host = call(p);
    const Limit limit = host->limit(kSoonMs, {});
    const TableSpec spec{.name = "rows", .kind = TableKind::Rows, .dim = kDim, .rows = kRows};
    ASSERT_TRUE(host->client().create(1, spec).ok());
    std::vector<uint64_t> ids(kRows);
    std::iota(ids.begin(), ids.end(), 0);
    std::vector<float> values(kRows * kDim);
    std::iota(values.begin(), values.end(), 0.0f);
    good(*host, host->client().push_rows(1, ids, values.data(), PushAs::Assigned, limit));
    std::vector<float> pulled(values.size());
    good(*host, host->client().pull_rows(1, ids, pulled.data(), limit));
    EXPECT_EQ(pulled, values);
    leave(std::move(host));
  });
}

// But over tcp, where a server's processor would have a part in it.
TEST_P(Rings, PullWithoutTheServerOnceTheyKnowWhereItLies) {
  constexpr uint64_t kElements = 6 * kShardElements + 11;
  constexpr uint64_t kShards = 7;
  constexpr int kPulls = 10;
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 0) return serve(p, 1);
    auto host = call(p);
    const Limit limit = host->limit(kSoonMs, {});
    ASSERT_TRUE(host->client().create(1, {.name = "w", .elements = kElements}).ok());
    std::vector<float> values(kElements);
    std::iota(values.begin(), values.end(), 1.0f);
    std::vector<float> pulled(kElements);
    for (int round = 1; round <= kPulls; ++round) {
      good(*host, host->client().push_range(1, 0, values, PushAs::Assigned, limit));
      good(*host, host->client().pull_range(1, 0, pulled, limit));
      ASSERT_EQ(pulled, values);
      for (float& value : values) value += 1;
    }
    leave(std::move(host));
  });
  EXPECT_EQ(answered_, GetParam().name == std::string("tcp") ? kPulls * kShards : kShards);
}

// Whether a server of this host has the loan; it has it some time after it is lent.
bool comes_to_have(ClientHost& host, std::span<const float> values) {
  const Limit limit = host.limit(500, {});
  while (!host.lent(0, std::as_bytes(values))) {
    if (limit.deadline.passed(host.clock())) return false;
    EXPECT_TRUE(host.wait(1, {}).ok());
  }
  return true;
}

// But where its memory is not mapped at the server: then it is sent.
TEST_P(Rings, PushWhatServersReadInTheirMemory) {
  constexpr uint64_t kElements = 6 * kShardElements + 11;
  const bool is_mapped = GetParam().name == std::string("shm");
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 0) return serve(p, 1);
    auto host = call(p);
    const Limit limit = host->limit(kSoonMs, {});
    ASSERT_TRUE(host->client().create(1, {.name = "w", .elements = kElements}).ok());
    std::vector<float> expected(kElements);
    for (int round = 1; round <= 3; ++round) {  // with a loan each
      const LoanPtr loan = host->lend(kElements * sizeof(float), limit).take();
      const std::span values(reinterpret_cast<float*>(loan->memory->data()), kElements);
      std::iota(values.begin(), values.end(), static_cast<float>(round));
      EXPECT_EQ(comes_to_have(*host, values), is_mapped);
      good(*host, host->client().push_range(1, 0, values, PushAs::Gradient, limit));
      for (uint64_t i = 0; i < kElements; ++i) expected[i] += values[i];
      std::vector<float> pulled(kElements);
      good(*host, host->client().pull_range(1, 0, pulled, limit));
      ASSERT_EQ(pulled, expected);
    }
    const uint64_t bytes = p.remote().stats().memory_bytes;
    for (int i = 0; i < 3; ++i) host->lend(kElements * sizeof(float), limit).take();
    EXPECT_LE(p.remote().stats().memory_bytes, bytes + 2 * kElements * sizeof(float))
        << "what nobody holds is not freed";
    leave(std::move(host));
  });
}

// Who frees what a pull was to be written to, once its worker has left, may do so.
TEST_P(Rings, WriteNothingOnceAWorkerHasLeft) {
  constexpr uint64_t kElements = 16 * kShardElements;
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 0) return serve(p, 1);
    auto host = call(p);
    const Limit limit = host->limit(kSoonMs, {});
    ASSERT_TRUE(host->client().create(1, {.name = "w", .elements = kElements}).ok());
    std::vector<float> pulled(kElements);
    good(*host, host->client().pull_range(1, 0, pulled, limit));
    good(*host, host->client().pull_range(1, 0, pulled, limit));
    // The driver is held up for a while, so the pull is under way when its worker leaves.
    std::atomic<bool> is_held{false};
    std::thread holds([&] {
      p.good(p.remote().watch(
          [&] {
            is_held = true;
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            return true;
          },
          "the end of a while", kSoonMs));
    });
    while (!is_held) std::this_thread::yield();
    const BatchPtr under_way = host->client().pull_range(1, 0, pulled, limit);
    leave(std::move(host));
    const std::vector<float> mark(kElements, -1);
    pulled = mark;
    holds.join();
    EXPECT_EQ(p.wait(p.remote().watch([] { return false; }, "nothing", 50)).code(),
              StatusCode::Timeout);
    EXPECT_EQ(pulled, mark);
  });
}

OwnedTransports shm(const Clock& clock) {
  return only(ShmTransport::open(Config{}, clock, ThisProcess::make().take()));
}

OwnedTransports tcp(const Clock& clock) {
  return only(TcpTransport::open(Config{}, clock, ThisProcess::make().take()));
}

INSTANTIATE_TEST_SUITE_P(Transports, Rings,
                         testing::Values(RemoteKind{"shm", true, shm},
                                         RemoteKind{"tcp", false, tcp}),
                         name_of);

}  // namespace
}  // namespace rdmacoll::ps::rings_test
