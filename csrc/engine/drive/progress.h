// Progress: who drives the engine, and how a wait waits. The only place with sleep on an
// operation's way (a shrinking pauses between its turns by itself); the simulator puts its own in
// its place. Floor: engine/drive. Thread: any.
//
// One driver at a time, for all that an endpoint drives. Whoever starts something drives one round
// if nobody else drives, so that what can leave at once has left, and lingers for what may end
// soon; whoever waits drives, so that a small operation costs no hand-over; while nobody waits and
// something is in flight, a background thread does. Callbacks run in the thread that finished the
// work, after it has left the role (never in one that only starts an operation: a background thread
// runs them then), and may wait for works that are still in flight: as long as one runs, another
// thread can drive.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/connect/transports.h"
#include "csrc/engine/drive/driven.h"
#include "csrc/engine/drive/heartbeat.h"
#include "csrc/engine/work/work.h"
#include "csrc/memory/wake_fd.h"

namespace rdmacoll {

class Progress {
 public:
  virtual ~Progress() = default;
  virtual void add(Driven& one) = 0;
  // Closes it and forgets it; nothing drives it afterwards.
  virtual void remove(Driven& one) = 0;
  struct News {
    // The work that was submitted, where it ends within microseconds if the other ranks are there.
    const Work* short_work = nullptr;
    bool caller_waits = false;  // see CallOptions::waits
  };
  // Something was submitted, or a group is to fail.
  virtual void notify(const News& news) = 0;
  // See Communicator::wait_all.
  virtual Status wait(std::span<Work* const> works, int64_t timeout_ms,
                      const InterruptCheck& interrupt) = 0;
};

class ThreadProgress final : public Progress {
 public:
  // spin_us: how long a driver polls before it begins to yield. All else outlives this.
  static Result<std::unique_ptr<ThreadProgress>> open(Transports& transports, const Clock& clock,
                                                      int64_t spin_us);
  ~ThreadProgress() override;

  void set_spin_us(int64_t spin_us) { spin_ns_.store(spin_us * 1000); }

  void add(Driven& one) override;
  void remove(Driven& one) override;
  void notify(const News& news) override;
  Status wait(std::span<Work* const> works, int64_t timeout_ms,
              const InterruptCheck& interrupt) override;

 private:
  using Callbacks = std::vector<std::pair<Work::Callback, Status>>;

  ThreadProgress(Transports& transports, const Clock& clock, int64_t spin_us, WakeFd wake_fd);

  // The role of the driver.
  bool try_take_role();
  void take_role();   // waits for it; the present driver makes way
  void free_role();   // as it is: callbacks stay for the next driver
  void leave_role();  // and runs the callbacks that are due
  static void run(const Callbacks& callbacks) noexcept;
  void hand_over();  // wakes whoever should drive next
  void wake_driver();
  bool somebody_drives_anyway() const;
  bool anything_in_flight() const;  // the driver's question

  // As the driver.
  void linger(const Work& short_work);
  void drive(const Work* work, int64_t now_ns, int64_t until_ns);
  void round();
  void settle(std::vector<Completion>& finished);
  void look_at_clock();
  void stay_awake_or_sleep(const Work* work, int64_t until_ns);
  void sleep(const Work* work, int64_t until_ns);

  // The background threads; both under mutex_.
  bool background_wanted() const;
  void keep_one_background_thread_free();
  void run_background();
  bool drive_in_background(std::unique_lock<std::mutex>& lock);
  bool watch(std::unique_lock<std::mutex>& lock, int64_t ns);

  Transports& transports_;
  const Clock& clock_;
  std::atomic<int64_t> spin_ns_;
  const WakeFd wake_fd_;  // ends a sleep of the driver

  std::mutex mutex_;                    // this block, and changes of driven_
  std::condition_variable role_free_;   // for waiters and take_role()
  std::condition_variable background_;  // for background threads
  bool stopping_ = false;
  std::vector<std::thread> threads_;
  uint32_t free_threads_ = 0;      // background threads not inside a callback
  bool on_watch_ = false;          // one of them looks by itself soon, without being woken
  bool wanted_meanwhile_ = false;  // since it is on watch

  std::atomic<bool> driving_{false};  // the role is taken
  // Nothing was in flight when the role was left, and nothing was submitted since: so nobody need
  // be woken to take it.
  std::atomic<bool> quiet_{true};
  std::atomic<int> waiters_{0};           // threads in wait()
  std::atomic<int> parked_{0};            // those of them that sleep until the role is free
  std::atomic<int> role_wanted_{0};       // threads in take_role()
  std::atomic<bool> waiter_came_{false};  // since a background thread was woken or is on watch
  std::atomic<int> in_callbacks_{0};
  std::atomic<bool> asleep_{
      false};  // the driver sleeps on wake_fd_ and the transports' descriptors

  // The driver's; driven_ also read under mutex_.
  std::vector<Driven*> driven_;
  std::vector<Completion> finished_;
  Callbacks callbacks_;  // run once the role is left
  uint32_t rounds_ = 0;
  bool moved_ = false;                    // since the last look at the clock
  std::atomic<bool> interrupted_{false};  // a signal ended a sleep
  int64_t now_ns_ = 0;
  int64_t moved_ns_ = 0;
  int64_t checked_ns_ = 0;
  uint32_t linger_not_ = 0;  // for so many works
  uint32_t in_vain_ = 0;     // what that was when lingering was last in vain
  int64_t patience_ns_;      // how long the driver stays awake while nothing moves

  Heartbeat heartbeat_;
};

}  // namespace rdmacoll
