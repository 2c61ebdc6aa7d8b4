// DriverRole: which thread drives the engine. One at a time has the role; who wants it waits here,
// and who only wants its work done may sleep here while another drives.
// Floor: engine/drive. Thread: any, but for what is said to be the driver's.
//
// No wake-up gets lost, by one rule throughout: each side first says what it does, then looks what
// the other does, with a full fence between, so that one of the two sees the other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "csrc/engine/work/work.h"
#include "csrc/memory/wake_fd.h"

namespace rdmacoll {

class DriverRole {
 public:
  // The descriptor ends a sleep of the driver.
  explicit DriverRole(WakeFd wake_fd) : wake_fd_(std::move(wake_fd)) {}

  // --- taking it ------------------------------------------------------------------------------
  bool try_take() { return wanted_.load() == 0 && try_take_now(); }
  // The same, also where others are in take().
  bool try_take_now() {
    if (!try_hold()) return false;
    turns_.store(turns() + 1, std::memory_order_relaxed);
    return true;
  }
  // For a round of a thread that waits for nothing, and will not come back for what follows.
  bool try_take_in_passing() { return wanted_.load() == 0 && try_hold(); }
  // Waits for it; the present driver makes way.
  void take();
  // has_work(): whether anything is left to drive, or to be told by the next driver. The driver's.
  template <typename HasWork>
  void free(HasWork has_work) {
    quiet_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // against note_work()
    if (has_work()) quiet_.store(false);
    note_owner({});
    taken_.store(false);
  }
  bool is_taken() const { return taken_.load(); }
  // How often it was taken, but in passing.
  uint64_t turns() const { return turns_.load(std::memory_order_relaxed); }
#ifndef NDEBUG
  bool is_mine() const { return owner_.load() == std::this_thread::get_id(); }
#endif

  // --- waiting beside it ----------------------------------------------------------------------
  // Something was submitted. Either the driver sees it, or this sees the driver asleep.
  void note_work() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    quiet_.store(false, std::memory_order_relaxed);
    wake_driver();
  }
  // A thread that waits for a work, and drives whenever it can.
  void add_waiter() { waiters_.fetch_add(1); }
  void remove_waiter() { waiters_.fetch_sub(1); }
  // Sleeps until the role is free, the work is done, or a moment has passed.
  void park(const Work& work);
  // Works have ended: who sleeps for one looks again.
  void wake_parked() {
    if (parked_.load() > 0) free_.notify_all();
  }
  // Wakes whoever wants the role; under mutex().
  void wake_wanting() { free_.notify_all(); }
  // A thread that runs callbacks does not drive meanwhile.
  void add_callback_thread() { in_callbacks_.fetch_add(1); }
  void remove_callback_thread() { in_callbacks_.fetch_sub(1); }
  bool runs_callbacks() const { return in_callbacks_.load() > 0; }

  // --- what the driver looks at ---------------------------------------------------------------
  // A thread sleeps that waits for a work: it would rather drive itself.
  bool has_parked() const { return parked_.load() > 0; }
  // A thread is in take().
  bool is_requested() const { return wanted_.load() > 0; }
  bool is_wanted() const { return has_parked() || is_requested(); }
  // Nothing was in flight when the role was left, and nothing was submitted since; or a waiter is
  // on its way to drive. So nobody need be woken for it.
  bool needs_nobody() const {
    return quiet_.load() || (waiters_.load() > 0 && in_callbacks_.load() == 0);
  }

  // --- the driver's sleep ---------------------------------------------------------------------
  // From here on whoever has something for the driver rings wake_fd().
  void say_asleep() { asleep_.store(true); }
  void say_awake() { asleep_.store(false); }
  const WakeFd& wake_fd() const { return wake_fd_; }
  void wake_driver() {
    if (asleep_.load()) wake_fd_.ring();
  }

  // Of the condition variables on which threads wait for the role or for work.
  std::mutex& mutex() { return mutex_; }

 private:
  bool try_hold() {
    if (taken_.load() || taken_.exchange(true)) return false;
    note_owner(std::this_thread::get_id());
    return true;
  }
#ifdef NDEBUG
  void note_owner(std::thread::id) {}
#else
  void note_owner(std::thread::id owner) { owner_.store(owner); }
  std::atomic<std::thread::id> owner_{};
#endif

  const WakeFd wake_fd_;
  std::mutex mutex_;
  std::condition_variable free_;
  std::atomic<bool> taken_{false};
  std::atomic<uint64_t> turns_{0};  // its holder alone stores it
  std::atomic<bool> asleep_{false};
  std::atomic<bool> quiet_{true};  // see needs_nobody()
  std::atomic<int> waiters_{0};
  std::atomic<int> parked_{0};  // those waiters that sleep
  std::atomic<int> wanted_{0};  // threads in take()
  std::atomic<int> in_callbacks_{0};
};

}  // namespace rdmacoll
