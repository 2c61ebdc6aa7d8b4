// Work: completion, once. Floor: engine. Thread: any.
#include "csrc/engine/work.h"

#include "csrc/base/check.h"

namespace rdmacoll {

void Work::on_done(Callback callback) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!done()) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback(status_);
}

std::vector<Work::Callback> Work::finish(Status status) {
  std::lock_guard<std::mutex> lock(mutex_);
  RDMACOLL_CHECK(!done());
  status_ = std::move(status);
  done_.store(true, std::memory_order_release);
  return std::move(callbacks_);
}

}  // namespace rdmacoll
