// Workers and servers that are processes (threads here), over every transport: what is pushed is
// what is pulled, also where rings are full, and whoever leaves holds nobody up.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "csrc/ps/client/client_host.h"
#include "csrc/ps/server/server_host.h"
#include "csrc/transport/shm/transport.h"
#include "csrc/transport/tcp/transport.h"
#include "tests/unit/remote/processes.h"

namespace rdmacoll::ps {
namespace {

class OneServer final : public Directory {
 public:
  explicit OneServer(std::string address) : address_(std::move(address)) {}
  Result<BucketMap> map() override { return BucketMap::spread(1, 1); }
  Result<Entry> server(ServerId) override { return Entry{address_, 0}; }

 private:
  const std::string address_;
};

class Rings : public RemoteTest {
 protected:
  std::atomic<int> left_{0};

  // Rank 0 is the server until all others have done theirs.
  void serve(RemoteProcess& p, int workers) {
    auto made = ServerHost::make(p.remote(), p.address(0), 0, 1, BucketMap::spread(1, 1),
                                 uint64_t{1} << 30);
    ASSERT_TRUE(made.ok()) << made.status().message();
    ServerHost& host = *made.value();
    std::thread hears([&] {
      for (int i = 0; i < workers; ++i) {
        const Status heard = host.hear(kSoonMs, {});
        EXPECT_TRUE(heard.ok()) << heard.message();
      }
      while (left_ < workers) {
        host.adopt(BucketMap::spread(1, 1), host.now_ns());
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      host.stop();
    });
    const Status served = host.serve({});
    EXPECT_TRUE(served.ok()) << served.message();
    hears.join();
  }
  std::unique_ptr<ClientHost> call(RemoteProcess& p) {
    auto made = ClientHost::make(p.remote(), p.address(p.rank()), 1,
                                 std::make_unique<OneServer>(p.address(0)), kSoonMs, {});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.take();
  }
  void leave(std::unique_ptr<ClientHost> host) {
    host.reset();
    ++left_;
  }
  static void good(ClientHost& host, const BatchPtr& batch) {
    const Status status = host.client().wait(batch, host.limit(kSoonMs, {}));
    EXPECT_TRUE(status.ok()) << status.message();
  }
};

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
}  // namespace rdmacoll::ps
