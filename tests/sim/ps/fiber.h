// Fiber: a thread that runs only while another one waits for it, so that a program which blocks can
// be one of several that a seed schedules. Floor: tests. Thread: resume() the scheduler's; yield()
// its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace rdmacoll::ps {

class Fiber {
 public:
  explicit Fiber(std::function<void(Fiber&)> body)
      : thread_([this, body = std::move(body)] {
          wait_for(true);
          body(*this);
          const std::lock_guard lock(mutex_);
          is_done_ = true;
          runs_ = false;
          changed_.notify_all();
        }) {}
  ~Fiber() {
    while (!is_done_) resume();
    thread_.join();
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  bool is_done() const { return is_done_; }
  void resume() {
    set(true);
    wait_for(false);
  }
  void yield() {
    set(false);
    wait_for(true);
  }

 private:
  void set(bool runs) {
    const std::lock_guard lock(mutex_);
    runs_ = runs;
    changed_.notify_all();
  }
  void wait_for(bool runs) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return runs_ == runs; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool runs_ = false;
  bool is_done_ = false;
  std::thread thread_;
};

}  // namespace rdmacoll::ps
