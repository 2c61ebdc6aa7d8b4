// Parts: the works of the engine that one operation of torch consists of, mostly one.
// Floor: torch_ext/backend. Thread: added by one; then any.
#pragma once

#include <c10/util/SmallVector.h>

#include "csrc/engine/work/work.h"
#include "torch_ext/join/session.h"

namespace rdmacoll::torch_ext {

class Parts {
 public:
  // One that could not start fails the whole, after those before it have ended; throws if there are
  // none. The communicator is for the exception.
  void add(Result<WorkPtr> part, const Communicator& communicator);
  // Drives them to their end in this thread, without the GIL; -1: without a limit of its own.
  // Throws if that has passed, or what a handler of a signal raised: then they are in flight still.
  void wait(Session& session, int64_t timeout_ms) const;

  bool done() const;
  Status status() const;  // once done
  const c10::SmallVector<WorkPtr, 1>& works() const { return works_; }

 private:
  c10::SmallVector<WorkPtr, 1> works_;
  Status start_failure_;
};

}  // namespace rdmacoll::torch_ext
