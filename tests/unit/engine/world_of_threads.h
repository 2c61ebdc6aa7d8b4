// A world whose ranks are threads of one process, each with an endpoint of its own.
// Floor: tests. Thread: run() makes one per rank and joins them.
#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "csrc/engine/endpoint.h"

namespace rdmacoll {

// A bootstrap in memory, for one group; usable any number of times.
class ThreadBootstrap {
 public:
  explicit ThreadBootstrap(int size) : barrier_(size), records_(size) {}

  class Face final : public Bootstrap {
   public:
    Face(ThreadBootstrap& world, int rank) : world_(world), rank_(rank) {}
    Result<std::vector<std::string>> all_gather(const std::string& mine, Deadline) override {
      world_.records_[rank_] = mine;
      world_.barrier_.arrive_and_wait();
      std::vector<std::string> all = world_.records_;
      world_.barrier_.arrive_and_wait();
      return all;
    }
    void decline(const std::string& mine) override {
      world_.records_[rank_] = mine;
      world_.barrier_.arrive_and_drop();
    }

   private:
    ThreadBootstrap& world_;
    int rank_;
  };

  Face face(int rank) { return Face(*this, rank); }

 private:
  std::barrier<> barrier_;
  std::vector<std::string> records_;
};

inline constexpr int64_t kTestTimeoutMs = 30'000;

// With RDMACOLL_TRANSPORT=verbs in the environment the same suites run over an RDMA device.
inline Config config_of_environment() {
  auto config = Config::from_environment();
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? config.take() : Config();
}

class WorldOfThreads {
 public:
  using Body = std::function<void(Communicator&)>;

  explicit WorldOfThreads(int size, Config config = config_of_environment())
      : size_(size), config_(std::move(config)) {}

  // Runs the body on every rank; the groups are left only when all bodies are done.
  void run(const Body& body) {
    ThreadBootstrap bootstrap(size_);
    std::barrier done(size_);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        auto endpoint = Endpoint::open(config_);
        ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
        auto face = bootstrap.face(rank);
        auto made = endpoint.value()->create_communicator(rank, size_, face, kTestTimeoutMs);
        EXPECT_TRUE(made.ok()) << made.status().message();
        if (made.ok()) body(*made.value());
        done.arrive_and_wait();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  int size_;
  Config config_;
};

// Waits for what a call started and expects it to end well.
inline void finish(Communicator& communicator, Result<WorkPtr> started) {
  ASSERT_TRUE(started.ok()) << started.status().message();
  const Status status = communicator.wait(*started.value(), -1, {});
  ASSERT_TRUE(status.ok()) << status.message();
}

}  // namespace rdmacoll
