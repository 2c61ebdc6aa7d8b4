// ThreadProgress. Floor: engine/drive. Thread: any.
#include "csrc/engine/drive/thread_progress.h"

#include <algorithm>
#include <string>

namespace rdmacoll {
namespace {

constexpr int64_t kInterruptEveryNs = 100'000'000;
}  // namespace

Result<std::unique_ptr<ThreadProgress>> ThreadProgress::open(Transports& transports,
                                                             const Clock& clock, int64_t spin_us) {
  Result<WakeFd> wake_fd = WakeFd::create();
  if (!wake_fd.ok()) return wake_fd.status();
  Result<WakeFd> attention_fd = WakeFd::create();
  if (!attention_fd.ok()) return attention_fd.status();
  return std::unique_ptr<ThreadProgress>(
      new ThreadProgress(transports, clock, spin_us, wake_fd.take(), attention_fd.take()));
}

ThreadProgress::ThreadProgress(Transports& transports, const Clock& clock, int64_t spin_us,
                               WakeFd wake_fd, WakeFd attention_fd)
    : clock_(clock),
      role_(std::move(wake_fd)),
      driver_(role_, transports, clock, spin_us),
      background_(role_, driver_, clock, transports, std::move(attention_fd)),
      heartbeat_([this, &transports] {
        for (Transport* transport : transports.in_use()) transport->note_time();
        notify({});
      }) {
  transports.when_used([this] { background_.note_transports(); });
}

void ThreadProgress::add(Driven& one) {
  role_.take();
  one.set_role(role_);
  driver_.add(one);
  background_.leave_role();
  background_.note_transports();
  heartbeat_.add(one);
  background_.hand_over();
}

void ThreadProgress::remove(Driven& one) {
  heartbeat_.remove(one);
  role_.take();
  driver_.remove(one);
  background_.leave_role();
  background_.hand_over();
}

Status ThreadProgress::wait(std::span<Work* const> works, int64_t timeout_ms,
                            const InterruptCheck& interrupt) {
  background_.note_waiter();
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
  role_.add_waiter();
  while (Work* work = next()) {
    if (role_.try_take()) {
      driver_.drive(work, now_ns, std::min(end_ns, interrupt_ns));
      background_.leave_role();
    } else {
      role_.park(*work);
    }
    if (work->done()) continue;
    const bool first_turn = now_ns == 0;
    now_ns = clock_.now_ns();
    if (first_turn) {
      end_ns = timeout_ms < 0 ? Driver::kNever : now_ns + timeout_ms * 1'000'000;
      interrupt_ns = now_ns + kInterruptEveryNs;
    }
    if (now_ns >= end_ns) {
      stopped = Status(StatusCode::Timeout, "wait timed out after " + std::to_string(timeout_ms) +
                                                " ms; the operation is still in flight");
      break;
    }
    if (driver_.take_interrupt() || now_ns >= interrupt_ns) {
      interrupt_ns = now_ns + kInterruptEveryNs;
      if (interrupt) stopped = interrupt();
      if (!stopped.ok()) break;
    }
  }
  role_.remove_waiter();
  background_.hand_over();
  return stopped;
}

void ThreadProgress::notify(const News& news) {
  role_.note_work();
  if (news.caller_waits && !role_.runs_callbacks()) return;
  // What can leave at once leaves here, and a short message is through: nobody needs waking for it.
  // Who starts a short operation comes back for its end, and is left what comes meanwhile.
  if (news.short_work != nullptr ? role_.try_take() : role_.try_take_in_passing()) {
    // What is no short operation may be set-up, which some transport sends in its poll() alone.
    driver_.round(news.short_work == nullptr ? Look::AtAll : Look::AtCheap);
    const bool is_short = news.short_work != nullptr && !news.short_work->done();
    if (is_short) driver_.spin_after_start(*news.short_work);
    background_.free_role();  // the caller may hold what callbacks want
  }
  background_.hand_over();
}

}  // namespace rdmacoll
