// Driver: what the thread with the driver's role does: rounds over the transports and all that is
// driven, the clock, and sleep. The only place with sleep on an operation's way.
// Floor: engine/drive. Thread: who has the role; set_spin_us(), interrupted() and
// take_interrupt() any.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/engine/connect/transports.h"
#include "csrc/engine/drive/driven.h"
#include "csrc/engine/drive/driver_role.h"
#include "csrc/engine/drive/spin_trial.h"
#include "csrc/engine/work/work.h"

namespace rdmacoll {

// At which transports a round looks: only at those that need not ask the system, where others are
// beside them, as each call of it delays what these could take at once.
enum class Look : uint8_t { AtAll, AtCheap };

class Driver {
 public:
  static constexpr int64_t kNever = INT64_MAX;
  using Callbacks = std::vector<std::pair<Work::Callback, Status>>;

  // spin_us: how long a waiter polls before it begins to yield. All else outlives this.
  Driver(DriverRole& role, Transports& transports, const Clock& clock, int64_t spin_us);

  void set_spin_us(int64_t spin_us) { spin_ns_.store(spin_us * 1000); }
  // A signal has ended a sleep since the last time.
  bool take_interrupt() { return interrupted_.exchange(false); }

  void add(Driven& one) { driven_.push_back(&one); }
  // Closes it and forgets it.
  void remove(Driven& one);

  // One round over everything in flight.
  void round(Look look);
  // Rounds, for a moment, for a work that may end at once.
  void spin_after_start(const Work& work);
  // Rounds until the work is done (without one: until nothing is in flight, or somebody is parked),
  // callbacks are due, the role is wanted, or until_ns.
  void drive(const Work* work, int64_t now_ns, int64_t until_ns);

  // Whether callbacks are due, or anything is in flight.
  bool has_work() const { return !callbacks_.empty() || anything_in_flight(); }
  // What is to be run once the role is left.
  bool has_callbacks() const { return !callbacks_.empty(); }
  Callbacks take_callbacks() { return std::exchange(callbacks_, {}); }

 private:
  bool anything_in_flight() const;
  bool every_look_is_a_call() const;
  void poll_transports(Look look);
  bool is_over(const Work* work) const;
  void settle();
  void look_at_clock();
  void stay_awake_or_sleep(const Work* work, int64_t until_ns);
  void sleep(const Work* work, int64_t until_ns);

  DriverRole& role_;
  Transports& transports_;
  const Clock& clock_;
  std::atomic<int64_t> spin_ns_;
  std::atomic<bool> interrupted_{false};
  std::vector<Driven*> driven_;
  std::vector<Completion> finished_;
  Callbacks callbacks_;
  SpinTrial spin_after_start_;
  LookBeforeSleep look_before_sleep_;
  uint32_t rounds_ = 0;  // of drive()
  bool moved_ = false;   // since the last look at the clock
  int64_t now_ns_ = 0;
  int64_t moved_ns_ = 0;
  int64_t checked_ns_ = 0;
  int64_t awake_budget_ns_;  // how long it stays awake while nothing moves
};

}  // namespace rdmacoll
