// Background: threads that drive while nobody waits, one of which attends to what peers send
// meanwhile (attention.h), and how the role goes from one thread to the next.
// Floor: engine/drive. Thread: any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/engine/drive/attention.h"
#include "csrc/engine/drive/driver.h"
#include "csrc/engine/drive/driver_role.h"

namespace rdmacoll {

class Background {
 public:
  // attention_fd: ends a sleep of the thread that attends. All else outlives this.
  Background(DriverRole& role, Driver& driver, const Clock& clock, const Transports& transports,
             WakeFd attention_fd);
  // Ends the threads.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Leaves the role as it is: callbacks stay for the next driver. The driver's.
  void free_role() {
    role_.free([this] { return driver_.has_work(); });
  }
  // Leaves the role and runs the callbacks that are due. The driver's.
  void leave_role() {
    if (driver_.has_callbacks()) [[unlikely]]
      return leave_role_and_run_callbacks();
    free_role();
  }
  // Wakes whoever should drive next. Without a lock where nobody need be woken: who parks, or is
  // about to, has said so before it looks whether the role is free, and this looks after it was
  // freed, so one of the two sees the other.
  void hand_over() {
    if (role_.is_wanted() || !role_.needs_nobody()) wake_next();
  }
  // Somebody waits for what it starts, so that a woken thread may have nothing to do.
  void note_waiter() {
    if (!waiter_came_.load(std::memory_order_relaxed)) waiter_came_.store(true);
  }
  // Transports may have come into use.
  void note_transports();

 private:
  void leave_role_and_run_callbacks();
  void wake_next();
  bool is_wanted() const { return !role_.is_wanted() && !role_.needs_nobody(); }
  // All under the role's mutex.
  void keep_one_free();
  void run();
  bool drive(std::unique_lock<std::mutex>& lock);
  bool watch(std::unique_lock<std::mutex>& lock, int64_t ns);
  bool attend(std::unique_lock<std::mutex>& lock, Patience& patience);

  DriverRole& role_;
  Driver& driver_;
  const Clock& clock_;
  const Attention attention_;
  std::atomic<bool> waiter_came_{false};  // since a thread was woken or is on watch

  // Under the role's mutex.
  std::condition_variable wake_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
  uint32_t free_threads_ = 0;      // not inside a callback
  bool on_watch_ = false;          // one of them looks by itself soon, without being woken
  bool wanted_meanwhile_ = false;  // since it is on watch
  bool attending_ = false;         // one of them sleeps in attention_
};

}  // namespace rdmacoll
