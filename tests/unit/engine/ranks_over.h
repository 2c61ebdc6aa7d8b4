// Ranks of one group that are threads, each on a host and over transports of the test's choice.
// Floor: tests. Thread: run_over() makes one per rank and joins them.
#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "csrc/engine/connect/group_setup.h"
#include "csrc/engine/connect/linker.h"
#include "csrc/engine/connect/linker_thread.h"
#include "csrc/engine/drive/thread_progress.h"
#include "csrc/engine/session/sessions.h"
#include "csrc/engine/shrinking.h"
#include "csrc/plan/selection/select.h"
#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll {

using OwnedTransports = std::vector<std::unique_ptr<Transport>>;

// What an endpoint holds.
class RankOver {
 public:
  // The transports: the best first.
  using Open = std::function<OwnedTransports(const Clock& clock)>;

  RankOver(const std::string& host, const Open& open)
      : owned_(open(clock_)),
        transports_(borrowed(owned_), {host, host}, Config{}, clock_),
        linker_(std::make_unique<Linker>(transports_, clock_, AlarmFd::create().take())),
        progress_(ThreadProgress::open(transports_, clock_, 5).take()),
        sessions_(
            std::make_unique<Sessions>(transports_, *linker_, *progress_, clock_, recorder_)) {
    linker_->drive_by([this] { progress_->notify({}); });
    linker_thread_.emplace(*linker_);
    Config config;
    config.log_level = LogLevel::Error;
    config.heap_bytes = 32 << 20;
    EXPECT_TRUE(transports_.adopt_heap(Heap::create(config).take()).ok());
  }

  Result<std::unique_ptr<Communicator>> join(uint32_t rank, uint32_t size, Bootstrap& bootstrap) {
    auto made = set_up_group(transports_, *linker_, clock_, Config{}, rank, size, bootstrap,
                             kTestTimeoutMs);
    if (!made.ok()) return made.status();
    return adopt(made.take());
  }
  // In the order in which they were opened.
  Transport& transport(size_t index) { return *owned_[index]; }
  Transports& transports() { return transports_; }
  Sessions& sessions() { return *sessions_; }
  FlightRecorder& recorder() { return *recorder_; }
  Progress& progress() { return *progress_; }
  const Clock& clock() const { return clock_; }

  bool leaves = false;  // once its body has returned, before the others end

 private:
  static std::vector<Transport*> borrowed(const OwnedTransports& owned) {
    std::vector<Transport*> all;
    for (const auto& transport : owned) all.push_back(transport.get());
    return all;
  }
  std::unique_ptr<Communicator> adopt(NewGroup made) {
    const EngineContext context{
        transports_, *linker_, *sessions_, *progress_, clock_, tuning_, algorithm_by_name("auto")};
    auto group =
        std::make_unique<Group>(clock_, std::move(made.links), transports_.heap(), Config{});
    const auto make = [this](NewGroup smaller, const RankSet&) {
      return adopt(std::move(smaller));
    };
    auto shrinking = std::make_unique<Shrinking>(*group, transports_, *linker_, *progress_, clock_,
                                                 Config{}, make);
    return std::make_unique<Communicator>(std::move(group), made.token, std::move(made.islands),
                                          context, kTestTimeoutMs, nullptr, std::move(shrinking));
  }

  SteadyClock clock_;
  const std::shared_ptr<FlightRecorder> recorder_ = std::make_shared<FlightRecorder>(Config{});
  Tuning tuning_;
  OwnedTransports owned_;
  Transports transports_;
  std::unique_ptr<Linker> linker_;
  std::unique_ptr<ThreadProgress> progress_;
  std::unique_ptr<Sessions> sessions_;
  std::optional<LinkerThread> linker_thread_;
};

inline void run_over(uint32_t size,
                     const std::function<std::unique_ptr<RankOver>(uint32_t rank)>& make,
                     const std::function<void(RankOver&, Communicator&)>& body) {
  ThreadBootstrap bootstrap(static_cast<int>(size));
  std::barrier done(size);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      auto rank = make(r);
      auto face = bootstrap.face(static_cast<int>(r));
      auto made = rank->join(r, size, face);
      EXPECT_TRUE(made.ok()) << made.status().message();
      std::unique_ptr<Communicator> communicator = made.take();
      body(*rank, *communicator);
      if (rank->leaves) {
        communicator.reset();
        rank.reset();
      }
      done.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace rdmacoll
