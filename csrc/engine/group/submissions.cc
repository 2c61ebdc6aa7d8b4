// Submissions. Floor: engine/group. Thread: see submissions.h.
#include "csrc/engine/group/submissions.h"

#include "csrc/base/check.h"

namespace rdmacoll {

template <typename Op>
Status Submissions::add(std::vector<Op>& to, Op op) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.ok()) return failure_;
  to.push_back(std::move(op));
  count_one();
  return Status();
}

Status Submissions::add(std::unique_ptr<CollectiveOp> op) {
  return add(new_.collectives, std::move(op));
}
Status Submissions::add(SendOp op) { return add(new_.sends, std::move(op)); }
Status Submissions::add(RecvOp op) { return add(new_.recvs, std::move(op)); }

void Submissions::add(ShrinkStateRead op) {
  std::lock_guard<std::mutex> lock(mutex_);
  RDMACOLL_CHECK(!new_.shrink_read);
  new_.shrink_read = std::move(op);
  count_one();
}

// Under the mutex, so that nothing is taken before it is counted.
void Submissions::count_one() {
  load_.in_flight.fetch_add(1, std::memory_order_relaxed);
  load_.has_new.store(true, std::memory_order_release);
}

void Submissions::fail(Status status, ExitReason reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (failure_.ok()) {
    failure_ = std::move(status);
    reason_ = reason;
  }
  note_change();
}

Status Submissions::failure() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

ExitReason Submissions::exit_reason() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

}  // namespace rdmacoll
