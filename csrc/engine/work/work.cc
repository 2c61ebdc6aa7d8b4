// Work: completion, once. Floor: engine/work. Thread: any.
#include "csrc/engine/work/work.h"

#include "csrc/base/check.h"

namespace rdmacoll {

void Work::on_done(Callback callback) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    State state = State::Open;
    callbacks_.push_back(std::move(callback));  // before finish() may come for it
    if (state_.compare_exchange_strong(state, State::Watched) || state == State::Watched) return;
    callback = std::move(callbacks_.back());
    callbacks_.pop_back();
  }
  callback(status_);
}

std::vector<Work::Callback> Work::finish(Status status) {
  RDMACOLL_CHECK(!done());
  status_ = std::move(status);
  if (state_.exchange(State::Done, std::memory_order_acq_rel) == State::Open) return {};
  std::lock_guard<std::mutex> lock(mutex_);
  return std::move(callbacks_);
}

}  // namespace rdmacoll
