// Processes with remote memory that are threads, over a transport of the test's parameter.
// Floor: tests. Thread: run() makes one per process and joins them.
#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "csrc/remote/remote.h"
#include "tests/unit/engine/ranks_over.h"

namespace rdmacoll {

inline constexpr int64_t kSoonMs = 20'000;

class RemoteProcess {
 public:
  RemoteProcess(RankOver& rank, Communicator& communicator, std::barrier<>& all)
      : rank_(rank), communicator_(communicator), all_(all) {}

  int rank() const { return communicator_.rank(); }
  Remote& remote() { return remote_; }
  Sessions& sessions() { return rank_.sessions(); }
  Transports& transports() { return rank_.transports(); }
  FlightRecorder& recorder() { return rank_.recorder(); }
  SessionPtr session_with(int rank) {
    auto session = sessions().meet(address(rank), "rank " + std::to_string(rank),
                                   Deadline::after_ms(rank_.clock(), kSoonMs), {});
    EXPECT_TRUE(session.ok()) << session.status().message();
    return session.take();
  }
  std::string address(int rank) const { return *communicator_.address_of(rank); }
  // All of them are here.
  void meet() { all_.arrive_and_wait(); }
  // Ends before the others do, who meet without it.
  void leave() { rank_.leaves = true; }
  void leave_all() {
    leave();
    all_.arrive_and_drop();
  }

  RemoteMemoryPtr memory(uint64_t bytes, Others others) {
    auto made = remote_.allocate(bytes, others);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.take();
  }
  void expose(ExposureInfo info, RemoteMemoryPtr memory, uint64_t offset) {
    const Status done = remote_.expose(std::move(info), std::move(memory), offset);
    EXPECT_TRUE(done.ok()) << done.message();
  }
  OpenedPtr open(const std::string& name, int rank) {
    auto opened = remote_.open(address(rank), "rank " + std::to_string(rank), name, kSoonMs, {});
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.take();
  }
  Status wait(const WorkPtr& work) { return remote_.wait(*work, -1, {}); }
  void good(const WorkPtr& work) {
    const Status status = wait(work);
    EXPECT_TRUE(status.ok()) << status.message();
  }

 private:
  RankOver& rank_;
  Communicator& communicator_;
  std::barrier<>& all_;
  Remote remote_{{rank_.transports(), rank_.sessions(), rank_.progress(), rank_.clock(), nullptr}};
};

// What the processes of a test reach each other over.
struct RemoteKind {
  const char* name;
  bool one_host;
  OwnedTransports (*open)(const Clock& clock);
  std::shared_ptr<void> (*network)() = nullptr;  // what there is for as long as they are
};

template <typename Opened>
OwnedTransports only(Result<std::unique_ptr<Opened>> opened) {
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  OwnedTransports owned;
  owned.push_back(opened.take());
  return owned;
}

class RemoteTest : public testing::TestWithParam<RemoteKind> {
 protected:
  void run(uint32_t size, const std::function<void(RemoteProcess&)>& body) const {
    const RemoteKind& kind = GetParam();
    const auto network = kind.network != nullptr ? kind.network() : nullptr;
    std::barrier<> all(size);
    std::barrier<> ready(size);
    std::barrier<> done(size);
    run_over(
        size,
        [&](uint32_t rank) {
          const std::string host = kind.one_host ? "host" : "host" + std::to_string(rank);
          return std::make_unique<RankOver>(host, kind.open);
        },
        [&](RankOver& rank, Communicator& communicator) {
          auto process = std::make_unique<RemoteProcess>(rank, communicator, all);
          ready.arrive_and_wait();
          body(*process);
          if (rank.leaves) return done.arrive_and_drop();
          done.arrive_and_wait();
        });
  }
};

inline std::string name_of(const testing::TestParamInfo<RemoteKind>& info) {
  return info.param.name;
}

}  // namespace rdmacoll
