// Parts. Floor: torch_ext/backend.
#include "torch_ext/backend/parts.h"

#include <algorithm>

#include "torch_ext/base/errors.h"
#include "torch_ext/base/interrupt.h"

namespace rdmacoll::torch_ext {

void Parts::add(Result<WorkPtr> part, const Communicator& communicator) {
  if (part.ok()) {
    works_.push_back(part.take());
  } else if (works_.empty()) {
    throw_status(part.status(), communicator);
  } else if (start_failure_.ok()) {
    start_failure_ = part.status();
  }
}

void Parts::wait(Session& session, int64_t timeout_ms) const {
  if (session.inherited()) throw_status(session.usable());
  const WithoutGil without_gil;
  PythonInterrupt interrupt;
  c10::SmallVector<Work*, 1> works;
  for (const WorkPtr& work : works_) works.push_back(work.get());
  const Status stopped = session.communicator().wait_all(
      works, timeout_ms, [&interrupt] { return interrupt.check(); });
  stay_if_leaving();
  if (done()) return;
  if (stopped.code() == StatusCode::Interrupted) interrupt.rethrow();
  throw_status(stopped);
}

bool Parts::done() const {
  return std::all_of(works_.begin(), works_.end(), [](const auto& work) { return work->done(); });
}

Status Parts::status() const {
  Status status = start_failure_;
  for (const WorkPtr& work : works_) {
    if (status.ok()) status = work->status();
  }
  return status;
}

}  // namespace rdmacoll::torch_ext
