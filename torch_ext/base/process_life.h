// ProcessLife: how often this process has forked, whether it is leaving, and a thread for ends that
// must not happen in the thread that brings them about.
// Floor: torch_ext/base. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace rdmacoll::torch_ext {

class ProcessLife {
 public:
  static ProcessLife& instance();

  // How often this process's line has forked since the first group: tells what a child inherited.
  uint64_t forks() const { return forks_.load(std::memory_order_relaxed); }

  // From now on nothing of this process may call into Python.
  void leave() { leaving_.store(true, std::memory_order_relaxed); }
  bool leaving() const { return leaving_.load(std::memory_order_relaxed); }

  // Lets go of it in a thread of its own. For a callback, where it may be the last communicator:
  // the engine's own thread may run the callback, and the end of the engine would wait for that.
  void end_elsewhere(std::shared_ptr<void> last);
  // Returns when all of that has ended.
  void join_ends();

 private:
  ProcessLife();

  std::atomic<uint64_t> forks_{0};
  std::atomic<bool> leaving_{false};
  std::mutex mutex_;
  std::thread ending_;  // of the last end_elsewhere(); it joins that of the one before
};

}  // namespace rdmacoll::torch_ext
