// SignalWait. Floor: torch_ext/remote. Thread: see signal_wait.h.
#include "torch_ext/remote/signal_wait.h"

#include <algorithm>

#include "torch_ext/base/errors.h"
#include "torch_ext/base/interrupt.h"

namespace rdmacoll::torch_ext {
namespace {

// How often a wait looks whether the sender still lives.
constexpr int64_t kLookForEndMs = 200;

}  // namespace

bool SignalWait::isCompleted() {
  auto notified = face_->remote().notified(name_);
  return !notified.ok() || notified.value() >= number_;
}

bool SignalWait::isSuccess() const {
  auto notified = face_->remote().notified(name_);
  return notified.ok() && notified.value() >= number_;
}

bool SignalWait::wait(std::chrono::milliseconds timeout) {
  const int64_t limit_ms = timeout == kNoTimeout ? timeout_ms_ : timeout.count();
  throw_if_failed(
      without_gil([&](const InterruptCheck& interrupt) { return look(limit_ms, interrupt); }));
  return true;
}

Status SignalWait::look(int64_t limit_ms, const InterruptCheck& interrupt) const {
  for (int64_t left_ms = limit_ms; left_ms > 0; left_ms -= kLookForEndMs) {
    auto work = face_->remote().wait_notified(name_, number_, std::min(left_ms, kLookForEndMs));
    if (!work.ok()) return work.status();
    const Status seen = face_->remote().wait(*work.value(), -1, interrupt);
    if (seen.code() != StatusCode::Timeout) return seen;
    RDMACOLL_RETURN_IF_ERROR(sender_->failure());
  }
  return Status(StatusCode::Timeout, "wait_signal: " + sender_->who +
                                         " has not signalled this window within " +
                                         std::to_string(limit_ms) + " ms");
}

}  // namespace rdmacoll::torch_ext
