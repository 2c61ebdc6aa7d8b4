// Rings: workers and a server that are processes (threads here), over a transport of the test's
// parameter. Floor: tests. Thread: RemoteTest makes one per process.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "csrc/ps/client/client_host.h"
#include "csrc/ps/server/server_host.h"
#include "tests/unit/remote/processes.h"

namespace rdmacoll::ps {

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
  std::atomic<uint64_t> answered_{0};  // pulls, by the server; once that has ended

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
        static_cast<void>(host.hear(20, {}));  // who lends something may have left
      }
      host.stop();
    });
    const Status served = host.serve({});
    EXPECT_TRUE(served.ok()) << served.message();
    hears.join();
    answered_ = host.stats().pulls;
  }
  std::unique_ptr<ClientHost> call(RemoteProcess& p) {
    auto made = ClientHost::make(p.remote(), p.address(p.rank()),
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

}  // namespace rdmacoll::ps
