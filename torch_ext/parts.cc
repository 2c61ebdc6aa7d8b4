// Parts. Floor: torch_ext.
#include "torch_ext/parts.h"

#include <algorithm>

#include "csrc/base/clock.h"
#include "torch_ext/errors.h"
#include "torch_ext/interrupt.h"

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
  const SteadyClock clock;
  const bool limited = timeout_ms >= 0;
  const Deadline deadline = limited ? Deadline::after_ms(clock, timeout_ms) : Deadline{};
  for (const WorkPtr& work : works_) {
    if (work->done()) continue;
    const int64_t left_ms = limited ? deadline.left_ms(clock) : -1;
    const Status status =
        session.communicator().wait(*work, left_ms, [&interrupt] { return interrupt.check(); });
    stay_if_leaving();
    if (work->done()) continue;
    if (status.code() == StatusCode::Interrupted) interrupt.rethrow();
    throw_status(status);
  }
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
