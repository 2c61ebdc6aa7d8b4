// Background. Floor: engine/drive. Thread: any.
#include "csrc/engine/drive/background.h"

#include <algorithm>
#include <chrono>

#include "csrc/base/limits.h"

namespace rdmacoll {
namespace {

constexpr int64_t kWatchMinNs = 100'000;  // how long a background thread leaves it to waiters
constexpr int64_t kWatchMaxNs = 1'000'000;

// A callback that throws ends the process: otherwise those behind it would never run.
void run_all(const Driver::Callbacks& callbacks) noexcept {
  for (const auto& [callback, status] : callbacks) callback(status);
}

}  // namespace

Background::Background(DriverRole& role, Driver& driver, const Clock& clock,
                       const Transports& transports, WakeFd attention_fd)
    : role_(role),
      driver_(driver),
      clock_(clock),
      attention_(std::move(attention_fd), transports, role) {
  std::lock_guard<std::mutex> lock(role_.mutex());
  keep_one_free();
}

Background::~Background() {
  std::vector<std::thread> threads;
  {
    std::lock_guard<std::mutex> lock(role_.mutex());
    stopping_ = true;
    threads.swap(threads_);
  }
  wake_.notify_all();
  attention_.wake();
  role_.wake_fd().ring();
  for (std::thread& thread : threads) thread.join();
}

void Background::leave_role_and_run_callbacks() {
  const Driver::Callbacks callbacks = driver_.take_callbacks();
  role_.add_callback_thread();
  free_role();
  hand_over();
  run_all(callbacks);
  role_.remove_callback_thread();
}

void Background::wake_next() {
  std::lock_guard<std::mutex> lock(role_.mutex());
  if (role_.is_taken()) return;
  if (role_.is_wanted()) {
    role_.wake_wanting();
  } else if (is_wanted()) {
    wanted_meanwhile_ = true;
    if (on_watch_) return;
    waiter_came_.store(false);
    if (attending_) return attention_.wake();
    wake_.notify_one();
  }
}

void Background::note_transports() {
  if (!attention_.is_needed()) return;
  std::lock_guard<std::mutex> lock(role_.mutex());
  if (attending_) return attention_.wake();
  wake_.notify_one();
}

void Background::keep_one_free() {
  if (free_threads_ > 0 || stopping_ || threads_.size() == kMaxBackgroundThreads) return;
  ++free_threads_;
  threads_.emplace_back([this] { run(); });
}

// Where operations are waited for as soon as they are started, waking a thread for them costs more
// than they do. So one whose work was short goes on watch: for a while nobody wakes it, then it
// looks by itself. If waiters came meanwhile it was woken in vain, and the more often so, the later
// it looks; if none came, or there was much to do, it rests until it is woken again.
void Background::run() {
  int64_t watch_ns = 0;
  Patience patience;
  std::unique_lock<std::mutex> lock(role_.mutex());
  while (!stopping_) {
    if (is_wanted() && role_.try_take_now()) {
      patience.note_own(role_.turns());
      watch_ns = drive(lock) ? 0 : std::max(watch_ns, kWatchMinNs);
    } else if (watch_ns > 0 && !on_watch_) {
      watch_ns = watch(lock, watch_ns) ? std::min(2 * watch_ns, kWatchMaxNs) : 0;
    } else if (attention_.is_needed() && !attending_) {
      watch_ns = attend(lock, patience) && waiter_came_.load() ? kWatchMinNs : 0;
    } else {
      wake_.wait(lock);
      watch_ns = waiter_came_.load() ? kWatchMinNs : 0;
    }
  }
}

// Whether there was much to do.
bool Background::drive(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const int64_t begin_ns = clock_.now_ns();
  driver_.drive(nullptr, begin_ns, Driver::kNever);
  const bool much = clock_.now_ns() - begin_ns > kWatchMinNs;
  static_cast<void>(driver_.take_interrupt());  // nobody to tell
  lock.lock();
  --free_threads_;
  if (driver_.has_callbacks()) {
    keep_one_free();
    if (!attending_ && attention_.is_needed()) wake_.notify_one();
  }
  lock.unlock();
  leave_role();
  hand_over();
  lock.lock();
  ++free_threads_;
  return much;
}

// Whether a thread would have been woken meanwhile, in vain.
bool Background::watch(std::unique_lock<std::mutex>& lock, int64_t ns) {
  on_watch_ = true;
  wanted_meanwhile_ = false;
  waiter_came_.store(false);
  wake_.wait_for(lock, std::chrono::nanoseconds(ns));
  on_watch_ = false;
  return wanted_meanwhile_ && waiter_came_.load();
}

// Sleeps until something has come that nobody takes, then drives, for one round if nothing is in
// flight: between two rounds whoever wants the role gets it. Whether it was woken.
bool Background::attend(std::unique_lock<std::mutex>& lock, Patience& patience) {
  attending_ = true;
  lock.unlock();
  const Attention::End end = attention_.sleep(patience);
  lock.lock();
  attending_ = false;
  if (end == Attention::End::Nobodys && !stopping_ && role_.try_take()) {
    patience.note_own(role_.turns());
    drive(lock);
  }
  return end == Attention::End::Woken;
}

}  // namespace rdmacoll
