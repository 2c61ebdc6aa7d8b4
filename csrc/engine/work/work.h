// Work: one operation in flight, shared by whoever issued it and the engine.
// Floor: engine/work. Thread: any; callbacks run in a thread that waits, or in the background
// (thread_progress.h), with no lock of the engine held.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/base/status.h"

namespace rdmacoll {

// What a wait asks now and then; what it returns, if that is not Ok, ends the wait.
using InterruptCheck = std::function<Status()>;

class Work {
 public:
  using Callback = std::function<void(const Status&)>;

  bool done() const { return state_.load(std::memory_order_acquire) == State::Done; }
  // Of a work that is done.
  const Status& status() const { return status_; }
  // The rank a recv was matched with; the sender's rank; -1 for collectives.
  int source_rank() const { return source_rank_; }
  // Whether it is a send to this rank itself. If somebody waits for one, it ends: without a receive
  // that is posted, with an error.
  bool to_self() const { return to_self_; }
  bool is_waited_for() const { return waited_for_.load(std::memory_order_acquire); }
  void set_waited_for() { waited_for_.store(true, std::memory_order_release); }
  // Runs at completion, or at once, in this thread, if the work is done already. It must not throw:
  // callbacks of other works wait behind it.
  void on_done(Callback callback);

  // --- the engine's side ----------------------------------------------------------------------
  // Once. The caller runs what comes back, with the status, when it holds no lock and no role.
  std::vector<Callback> finish(Status status);
  void set_source_rank(int rank) { source_rank_ = rank; }
  void set_to_self() { to_self_ = true; }  // before it is shared

 private:
  // Watched: somebody waits by a callback. Who finishes one that is only Open takes no lock.
  enum class State : uint8_t { Open, Watched, Done };
  std::atomic<State> state_{State::Open};
  Status status_;
  int source_rank_ = -1;
  bool to_self_ = false;
  std::atomic<bool> waited_for_{false};
  std::mutex mutex_;  // callbacks_ against finish()
  std::vector<Callback> callbacks_;
};

using WorkPtr = std::shared_ptr<Work>;

// A work that the driver has ended, before it is told.
struct Completion {
  WorkPtr work;
  Status status;
};

}  // namespace rdmacoll
