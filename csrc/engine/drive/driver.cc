// Driver. Floor: engine/drive. Thread: see driver.h.
#include "csrc/engine/drive/driver.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "csrc/base/limits.h"

namespace rdmacoll {
namespace {

constexpr int64_t kCheckEveryNs = 1'000'000;  // deadlines and peers
constexpr int64_t kAwakeMinNs = 10'000;       // how long a wait stays awake
constexpr int64_t kAwakeMaxNs = 300'000;
constexpr int64_t kAwakeOnOwnCoreNs = 200'000;  // of a waiter, at least
constexpr int64_t kSpinAfterStartNs = 100'000;
// The longest sleep, for deadlines to be looked at. Without a waiter, and the longer nothing has
// moved, the rarer: what waits for others to begin may do so for ever.
constexpr int64_t kSleepForNs = 50'000'000;
constexpr int64_t kSleepUnwatchedNs = 250'000'000;
constexpr uint32_t kRoundsPerLook = 32;  // rounds between two looks at the clock
// The same, where every look at the transports is a call of the system.
constexpr uint32_t kCallsPerLook = 2;
// Beside transports that are cheaper to look at, one that asks the system is looked at in every so
// many rounds.
constexpr uint32_t kRoundsPerCall = 8;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Driver::Driver(DriverRole& role, Transports& transports, const Clock& clock, int64_t spin_us)
    : role_(role),
      transports_(transports),
      clock_(clock),
      spin_ns_(spin_us * 1000),
      awake_budget_ns_(kAwakeMaxNs) {}

void Driver::remove(Driven& one) {
  std::erase(driven_, &one);
  one.close(finished_);
  settle();
}

bool Driver::anything_in_flight() const {
  return std::any_of(driven_.begin(), driven_.end(), [](Driven* one) { return !one->idle(); });
}

// To wake a thread that ends the work, and to be woken by it (DDP waits for a future, so it cannot
// drive), takes longer than a short operation.
void Driver::spin_after_start(const Work& work) {
  if (spin_after_start_.skips()) return;
  if (spin_ns_.load(std::memory_order_relaxed) == 0) return;  // the others need this core
  const int64_t now_ns = clock_.now_ns();
  drive(&work, now_ns, now_ns + kSpinAfterStartNs);
  spin_after_start_.note(!work.done());
}

void Driver::drive(const Work* work, int64_t now_ns, int64_t until_ns) {
  now_ns_ = moved_ns_ = now_ns;
  look_before_sleep_.begin(now_ns);
  // Who attends to what has come drives one round only, so that one looks at all transports.
  if (work == nullptr) rounds_ = 0;
  // Powers of two: a division in every round would be felt.
  const uint32_t look_mask = (every_look_is_a_call() ? kCallsPerLook : kRoundsPerLook) - 1;
  while (true) {
    round(rounds_ % kRoundsPerCall == 0 ? Look::AtAll : Look::AtCheap);
    if (is_over(work)) {
      if (moved_ && look_before_sleep_.is_looking()) look_before_sleep_.note_moved(clock_.now_ns());
      return;
    }
    if ((++rounds_ & look_mask) != 0) {
      pause_cpu();
      continue;
    }
    look_at_clock();
    if (now_ns_ >= until_ns) return;
    stay_awake_or_sleep(work, until_ns);
    if (interrupted_.load()) return;
  }
}

bool Driver::is_over(const Work* work) const {
  if (work != nullptr ? work->done() : role_.has_parked() || !anything_in_flight()) return true;
  return !callbacks_.empty() || role_.is_requested();
}

void Driver::round(Look look) {
  poll_transports(look);
  for (Driven* one : driven_) {
    if (!one->idle()) moved_ |= one->advance(finished_);
  }
  settle();
}

// Nobody is met over a transport that is cheaper to look at.
bool Driver::every_look_is_a_call() const {
  const std::span<Transport* const> used = transports_.in_use();
  return !used.empty() && std::all_of(used.begin(), used.end(), [](const Transport* transport) {
    return transport->info().attention_fd >= 0;
  });
}

void Driver::poll_transports(Look look) {
  const std::span<Transport* const> used = transports_.in_use();
  const bool all = look == Look::AtAll || used.size() == 1;
  for (Transport* transport : used) {
    if (all || transport->info().attention_fd < 0) transport->poll();
  }
}

void Driver::settle() {
  if (finished_.empty()) return;
  for (Completion& completion : finished_) {
    for (Work::Callback& callback : completion.work->finish(completion.status)) {
      callbacks_.emplace_back(std::move(callback), completion.status);
    }
  }
  finished_.clear();
  role_.wake_parked();
}

// Spins, yields, sleeps, each in its time. The budget doubles when something moved while awake, and
// halves when it came to sleep: where the peers answer at once a wait never sleeps, where they have
// no core (or are late) it does not take theirs. Where every rank has a core a waiter keeps some of
// it: jobs were seen in which two ranks slept in every operation, perhaps by turns on one core,
// where the system would move those apart that are awake.
void Driver::stay_awake_or_sleep(const Work* work, int64_t until_ns) {
  const int64_t still_ns = now_ns_ - moved_ns_;
  const int64_t spin_ns = spin_ns_.load(std::memory_order_relaxed);
  const int64_t least_ns = work != nullptr && spin_ns > 0 ? kAwakeOnOwnCoreNs : 0;
  if (every_look_is_a_call()) {
    if (still_ns == 0) return;
    if (!look_before_sleep_.looks_again(now_ns_)) {
      sleep(work, until_ns);
    } else if (work == nullptr || spin_ns == 0) {
      sched_yield();
    }
  } else if (still_ns == 0) {
    awake_budget_ns_ = std::min(2 * awake_budget_ns_, kAwakeMaxNs);
  } else if (still_ns > std::max(awake_budget_ns_, least_ns)) {
    awake_budget_ns_ = std::max(awake_budget_ns_ / 2, kAwakeMinNs);
    sleep(work, until_ns);
  } else if (work == nullptr || still_ns > spin_ns) {
    // The background thread never spins: the cores' owners compute beside it.
    sched_yield();
  }
}

void Driver::look_at_clock() {
  now_ns_ = clock_.now_ns();
  if (moved_) {
    moved_ns_ = now_ns_;
    look_before_sleep_.note_moved(now_ns_);
  }
  moved_ = false;
  if (now_ns_ - checked_ns_ < kCheckEveryNs) return;
  checked_ns_ = now_ns_;
  for (Driven* one : driven_) one->check(finished_);
  settle();
}

void Driver::sleep(const Work* work, int64_t until_ns) {
  role_.say_asleep();
  const std::span<Transport* const> transports = transports_.in_use();
  std::array<pollfd, 1 + kMaxTransports> waited{{{role_.wake_fd().get(), POLLIN, 0}}};
  size_t count = 1;
  for (Transport* transport : transports) waited[count++] = {transport->arm(), POLLIN, 0};
  std::atomic_thread_fence(std::memory_order_seq_cst);
  moved_ = false;
  round(Look::AtAll);
  const bool make_way = role_.is_requested() || (work == nullptr && role_.has_parked());
  if (!moved_ && !make_way) {
    const int64_t unwatched_ns = std::min((now_ns_ - moved_ns_) / 4, kSleepUnwatchedNs);
    const int64_t longest_ns = work == nullptr ? std::max(kSleepForNs, unwatched_ns) : kSleepForNs;
    const int64_t sleep_ns = std::min(longest_ns, until_ns - now_ns_);
    const int ready =
        ::poll(waited.data(), count, static_cast<int>((sleep_ns + 999'999) / 1'000'000));
    if (ready < 0 && errno == EINTR) interrupted_.store(true);
    if (waited[0].revents != 0) role_.wake_fd().drain();
  }
  for (Transport* transport : transports) transport->disarm();
  role_.say_awake();
}

}  // namespace rdmacoll
