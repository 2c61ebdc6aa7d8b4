// ThreadProgress: the role, waits and sleep. Floor: engine/drive. Thread: any.
#include "csrc/engine/drive/progress.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "csrc/base/limits.h"

namespace rdmacoll {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kCheckEveryNs = 1'000'000;  // deadlines and peers
constexpr int64_t kPatienceMinNs = 10'000;    // how long a wait stays awake
constexpr int64_t kPatienceMaxNs = 300'000;
constexpr int64_t kPatienceOnOwnCoreNs = 200'000;  // of a waiter, at least
constexpr int64_t kLingerNs = 100'000;             // how long who starts a short work drives it
constexpr uint32_t kNotLingerMost = 15;
constexpr int64_t kSleepForNs = 50'000'000;  // the longest sleep, for deadlines to be looked at
constexpr int64_t kInterruptEveryNs = 100'000'000;
constexpr int64_t kWatchMinNs = 100'000;  // how long a background thread leaves it to waiters
constexpr int64_t kWatchMaxNs = 1'000'000;
constexpr uint32_t kRoundsPerLook = 32;  // rounds between two looks at the clock

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Result<std::unique_ptr<ThreadProgress>> ThreadProgress::open(Transports& transports,
                                                             const Clock& clock, int64_t spin_us) {
  Result<WakeFd> wake_fd = WakeFd::create();
  if (!wake_fd.ok()) return wake_fd.status();
  return std::unique_ptr<ThreadProgress>(
      new ThreadProgress(transports, clock, spin_us, wake_fd.take()));
}

ThreadProgress::ThreadProgress(Transports& transports, const Clock& clock, int64_t spin_us,
                               WakeFd wake_fd)
    : transports_(transports),
      clock_(clock),
      spin_ns_(spin_us * 1000),
      wake_fd_(std::move(wake_fd)),
      patience_ns_(kPatienceMaxNs) {
  std::lock_guard<std::mutex> lock(mutex_);
  keep_one_background_thread_free();
}

ThreadProgress::~ThreadProgress() {
  std::vector<std::thread> threads;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  background_.notify_all();
  wake_fd_.ring();
  for (std::thread& thread : threads) thread.join();
}

void ThreadProgress::add(Driven& one) {
  take_role();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    driven_.push_back(&one);
  }
  leave_role();
  heartbeat_.add(one);
  hand_over();
}

void ThreadProgress::remove(Driven& one) {
  heartbeat_.remove(one);
  take_role();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::erase(driven_, &one);
  }
  one.close(finished_);
  settle(finished_);
  leave_role();
  hand_over();
}

Status ThreadProgress::wait(std::span<Work* const> works, int64_t timeout_ms,
                            const InterruptCheck& interrupt) {
  if (!waiter_came_.load(std::memory_order_relaxed)) waiter_came_.store(true);
  // The first that is not done; nullptr: all are.
  const auto next = [&works]() -> Work* {
    while (!works.empty() && works.front()->done()) works = works.subspan(1);
    return works.empty() ? nullptr : works.front();
  };
  if (next() == nullptr) return Status();
  // What ends at once never asks the clock: the first turn is until the driver looks at it.
  int64_t now_ns = 0;
  int64_t end_ns = 0;
  int64_t interrupt_ns = 0;
  Status stopped;
  waiters_.fetch_add(1);
  while (Work* work = next()) {
    if (try_take_role()) {
      drive(work, now_ns, std::min(end_ns, interrupt_ns));
      leave_role();
    } else {
      // A background driver makes way for a parked waiter; a driver that waits itself does not.
      parked_.fetch_add(1);
      wake_driver();
      std::unique_lock<std::mutex> lock(mutex_);
      role_free_.wait_for(lock, std::chrono::milliseconds(10),
                          [&] { return !driving_ || work->done(); });
      parked_.fetch_sub(1);
    }
    if (work->done()) continue;
    const bool first_turn = now_ns == 0;
    now_ns = clock_.now_ns();
    if (first_turn) {
      end_ns = timeout_ms < 0 ? kNever : now_ns + timeout_ms * 1'000'000;
      interrupt_ns = now_ns + kInterruptEveryNs;
    }
    if (now_ns >= end_ns) {
      stopped = Status(StatusCode::Timeout, "wait timed out after " + std::to_string(timeout_ms) +
                                                " ms; the operation is still in flight");
      break;
    }
    if (interrupted_.exchange(false) || now_ns >= interrupt_ns) {
      interrupt_ns = now_ns + kInterruptEveryNs;
      if (interrupt) stopped = interrupt();
      if (!stopped.ok()) break;
    }
  }
  waiters_.fetch_sub(1);
  hand_over();
  return stopped;
}

void ThreadProgress::notify(const News& news) {
  // Against sleep(): either the driver sees what was submitted, or this sees it asleep. The same
  // against free_role().
  std::atomic_thread_fence(std::memory_order_seq_cst);
  quiet_.store(false, std::memory_order_relaxed);
  wake_driver();
  if (news.caller_waits && in_callbacks_.load() == 0) return;
  // What can leave at once leaves here, and a short message is through: nobody needs waking for it.
  if (try_take_role()) {
    round();
    if (news.short_work != nullptr && !news.short_work->done()) linger(*news.short_work);
    free_role();  // the caller may hold what callbacks want
  }
  hand_over();
}

// --- the role ------------------------------------------------------------------------------------

bool ThreadProgress::try_take_role() {
  return role_wanted_.load() == 0 && !driving_.load() && !driving_.exchange(true);
}

void ThreadProgress::take_role() {
  role_wanted_.fetch_add(1);
  wake_driver();
  std::unique_lock<std::mutex> lock(mutex_);
  while (driving_.exchange(true)) {
    role_free_.wait_for(lock, std::chrono::milliseconds(10));
    wake_driver();
  }
  role_wanted_.fetch_sub(1);
}

void ThreadProgress::free_role() {
  quiet_.store(true, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // against notify()
  if (!callbacks_.empty() || anything_in_flight()) quiet_.store(false);
  driving_.store(false);
}

// A callback that throws ends the process: otherwise those behind it would never run.
void ThreadProgress::run(const Callbacks& callbacks) noexcept {
  for (const auto& [callback, status] : callbacks) callback(status);
}

void ThreadProgress::leave_role() {
  Callbacks callbacks;
  callbacks.swap(callbacks_);
  if (callbacks.empty()) return free_role();
  in_callbacks_.fetch_add(1);
  free_role();
  hand_over();
  run(callbacks);
  in_callbacks_.fetch_sub(1);
}

// Without a lock where nobody need be woken. Who parks, or is about to, has said so before it looks
// whether the role is free, and this looks after it was freed: one of the two sees the other.
void ThreadProgress::hand_over() {
  const bool wanted = parked_.load() > 0 || role_wanted_.load() > 0;
  if (!wanted && (quiet_.load() || somebody_drives_anyway())) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (driving_) return;
  if (parked_.load() > 0 || role_wanted_.load() > 0) {
    role_free_.notify_all();
  } else if (background_wanted()) {
    wanted_meanwhile_ = true;
    if (on_watch_) return;
    waiter_came_.store(false);
    background_.notify_one();
  }
}

void ThreadProgress::wake_driver() {
  if (asleep_.load()) wake_fd_.ring();
}

bool ThreadProgress::anything_in_flight() const {
  return std::any_of(driven_.begin(), driven_.end(), [](Driven* one) { return !one->idle(); });
}

bool ThreadProgress::background_wanted() const {
  if (parked_.load() > 0 || role_wanted_.load() > 0) return false;
  return !quiet_.load() && !somebody_drives_anyway();
}

bool ThreadProgress::somebody_drives_anyway() const {
  return waiters_.load() > 0 && in_callbacks_.load() == 0;
}

void ThreadProgress::keep_one_background_thread_free() {
  if (free_threads_ > 0 || stopping_ || threads_.size() == kMaxBackgroundThreads) return;
  ++free_threads_;
  threads_.emplace_back([this] { run_background(); });
}

// Where operations are waited for as soon as they are started, waking a thread for them costs more
// than they do. So one whose work was short goes on watch: for a while nobody wakes it, then it
// looks by itself. If waiters came meanwhile it was woken in vain, and the more often so, the later
// it looks; if none came, or there was much to do, it rests until it is woken again.
void ThreadProgress::run_background() {
  int64_t watch_ns = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    if (background_wanted() && !driving_.exchange(true)) {
      watch_ns = drive_in_background(lock) ? 0 : std::max(watch_ns, kWatchMinNs);
    } else if (watch_ns > 0 && !on_watch_) {
      watch_ns = watch(lock, watch_ns) ? std::min(2 * watch_ns, kWatchMaxNs) : 0;
    } else {
      background_.wait(lock);
      watch_ns = waiter_came_.load() ? kWatchMinNs : 0;
    }
  }
}

// Whether there was much to do.
bool ThreadProgress::drive_in_background(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const int64_t begin_ns = clock_.now_ns();
  drive(nullptr, begin_ns, kNever);
  const bool much = clock_.now_ns() - begin_ns > kWatchMinNs;
  interrupted_.store(false);  // nobody to tell
  lock.lock();
  --free_threads_;
  if (!callbacks_.empty()) keep_one_background_thread_free();
  lock.unlock();
  leave_role();
  hand_over();
  lock.lock();
  ++free_threads_;
  return much;
}

// Whether a thread would have been woken meanwhile, in vain.
bool ThreadProgress::watch(std::unique_lock<std::mutex>& lock, int64_t ns) {
  on_watch_ = true;
  wanted_meanwhile_ = false;
  waiter_came_.store(false);
  background_.wait_for(lock, std::chrono::nanoseconds(ns));
  on_watch_ = false;
  return wanted_meanwhile_ && waiter_came_.load();
}

// --- driving -------------------------------------------------------------------------------------

// To wake a thread that ends the work, and to be woken by it (DDP waits for a future, so it cannot
// drive), takes longer than a short operation. Where the others have not come in that time, the
// next works are left to that thread at once: one, then 3, 7 and 15 of them.
void ThreadProgress::linger(const Work& short_work) {
  if (linger_not_ > 0) {
    --linger_not_;
    return;
  }
  if (spin_ns_.load(std::memory_order_relaxed) == 0) return;  // the others need this core
  const int64_t now_ns = clock_.now_ns();
  drive(&short_work, now_ns, now_ns + kLingerNs);
  in_vain_ = short_work.done() ? 0 : std::min(2 * in_vain_ + 1, kNotLingerMost);
  linger_not_ = in_vain_;
}

// Ends when the work is done (without one: when nothing is in flight, or somebody is parked), when
// callbacks are due, when the role is wanted, or at until_ns.
void ThreadProgress::drive(const Work* work, int64_t now_ns, int64_t until_ns) {
  now_ns_ = moved_ns_ = now_ns;
  while (true) {
    round();
    if (work != nullptr ? work->done() : parked_.load() > 0 || !anything_in_flight()) return;
    if (!callbacks_.empty() || role_wanted_.load() > 0) return;
    if (++rounds_ % kRoundsPerLook != 0) {
      pause_cpu();
      continue;
    }
    look_at_clock();
    if (now_ns_ >= until_ns) return;
    stay_awake_or_sleep(work, until_ns);
    if (interrupted_.load()) return;
  }
}

void ThreadProgress::round() {
  for (Transport* transport : transports_.in_use()) transport->poll();
  for (Driven* one : driven_) {
    if (!one->idle()) moved_ |= one->advance(finished_);
  }
  settle(finished_);
}

void ThreadProgress::settle(std::vector<Completion>& finished) {
  if (finished.empty()) return;
  for (Completion& completion : finished) {
    for (Work::Callback& callback : completion.work->finish(completion.status)) {
      callbacks_.emplace_back(std::move(callback), completion.status);
    }
  }
  finished.clear();
  if (parked_.load() > 0) role_free_.notify_all();
}

// Spins, yields, sleeps, each in its time. Patience doubles when something moved while awake, and
// halves when it came to sleep: where the peers answer at once a wait never sleeps, where they have
// no core (or are late) it does not take theirs. Where every rank has a core a waiter keeps some
// patience: jobs were seen in which two ranks slept in every operation, perhaps by turns on one
// core, where the system would move those apart that are awake.
void ThreadProgress::stay_awake_or_sleep(const Work* work, int64_t until_ns) {
  const int64_t still_ns = now_ns_ - moved_ns_;
  const int64_t spin_ns = spin_ns_.load(std::memory_order_relaxed);
  const int64_t least_ns = work != nullptr && spin_ns > 0 ? kPatienceOnOwnCoreNs : 0;
  if (still_ns == 0) {
    patience_ns_ = std::min(2 * patience_ns_, kPatienceMaxNs);
  } else if (still_ns > std::max(patience_ns_, least_ns)) {
    patience_ns_ = std::max(patience_ns_ / 2, kPatienceMinNs);
    sleep(work, until_ns);
  } else if (work == nullptr || still_ns > spin_ns) {
    // The background thread never spins: the cores' owners compute beside it.
    sched_yield();
  }
}

void ThreadProgress::look_at_clock() {
  now_ns_ = clock_.now_ns();
  if (moved_) moved_ns_ = now_ns_;
  moved_ = false;
  if (now_ns_ - checked_ns_ < kCheckEveryNs) return;
  checked_ns_ = now_ns_;
  for (Driven* one : driven_) one->check(finished_);
  settle(finished_);
}

void ThreadProgress::sleep(const Work* work, int64_t until_ns) {
  asleep_.store(true);
  const std::span<Transport* const> transports = transports_.in_use();
  std::array<pollfd, 1 + kMaxTransports> waited{{{wake_fd_.get(), POLLIN, 0}}};
  size_t count = 1;
  for (Transport* transport : transports) waited[count++] = {transport->arm(), POLLIN, 0};
  std::atomic_thread_fence(std::memory_order_seq_cst);
  moved_ = false;
  round();
  const bool make_way = role_wanted_.load() > 0 || (work == nullptr && parked_.load() > 0);
  if (!moved_ && !make_way) {
    const int64_t sleep_ns = std::min(kSleepForNs, until_ns - now_ns_);
    const int ready =
        ::poll(waited.data(), count, static_cast<int>((sleep_ns + 999'999) / 1'000'000));
    if (ready < 0 && errno == EINTR) interrupted_.store(true);
    if (waited[0].revents != 0) wake_fd_.drain();
  }
  for (Transport* transport : transports) transport->disarm();
  asleep_.store(false);
}

}  // namespace rdmacoll
