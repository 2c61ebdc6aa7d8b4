// Session's life. Floor: torch_ext/join.
#include "torch_ext/join/session.h"

#include <new>
#include <utility>

#include "torch_ext/base/process_life.h"

namespace rdmacoll::torch_ext {
namespace {

// abort() ends operations within the engine's next round; callbacks may want the GIL.
constexpr int64_t kAbortMs = 10'000;

}  // namespace

Session::Session(std::shared_ptr<Communicator> communicator)
    : communicator_(std::move(communicator)), forks_(ProcessLife::instance().forks()) {}

Session::~Session() {
  // Its threads and locks exist in the parent only: leak this reference.
  if (inherited()) {
    new std::shared_ptr<Communicator>(std::move(communicator_));
  } else if (communicator_ != nullptr && InCallbacks::here()) {
    ProcessLife::instance().end_elsewhere(std::move(communicator_));
  }
}

bool Session::inherited() const { return forks_ != ProcessLife::instance().forks(); }

Status Session::joined() const {
  if (communicator_ != nullptr) [[likely]]
    return Status();
  return Status(StatusCode::InvalidArgument,
                "the group has no ranks: it was made with enable_reconfigure=True, and is in none "
                "before torch.distributed._reconfigure has been given their handles, nor after one "
                "that failed");
}

Status Session::usable() const {
  if (communicator_ == nullptr) [[unlikely]]
    return joined();
  if (inherited()) [[unlikely]] {
    return Status(StatusCode::InvalidArgument,
                  "this process was forked from the one that made the group; make groups in the "
                  "process that uses them, or start it with the method 'spawn'");
  }
  if (closed_.load(std::memory_order_relaxed)) [[unlikely]] {
    return Status(StatusCode::Aborted,
                  "the group was shut down; make a new one with init_process_group or new_group");
  }
  return Status();
}

void Session::close(const std::string& reason, int64_t grace_ms) {
  if (inherited() || communicator_ == nullptr) return;
  closed_.store(true, std::memory_order_relaxed);
  if (in_flight_->wait_idle(grace_ms)) return;
  communicator_->leave(reason);
  // Only a callback that waits for this very thread takes longer; leaving it is the lesser evil.
  in_flight_->wait_idle(kAbortMs);
}

}  // namespace rdmacoll::torch_ext
