// Where a Status becomes an exception, and the only place where it does.
//
//   InvalidArgument              RuntimeError, as torch's own backends raise for bad arguments
//   Unsupported                  NotImplementedError (a RuntimeError)
//   Timeout, Mismatch, Aborted   torch.distributed.DistBackendError
//   PeerFailed, System           torch.distributed.DistNetworkError
//
// Those of a group that has lost ranks are rdmacoll.DeadRankError, which is both of the last two,
// and carries the ranks; but not in futures, whose errors are made in threads without Python.
//
// Floor: torch_ext/base. Thread: any.
#pragma once

#include <exception>
#include <utility>

#include "csrc/base/status.h"
#include "csrc/engine/communicator.h"

namespace rdmacoll::torch_ext {

std::exception_ptr to_exception(const Status& status);
[[noreturn]] void throw_status(const Status& status);

// Of an operation of this group, or of what is made of it.
[[noreturn]] void throw_status(const Status& status, const Communicator& communicator);

inline void throw_if_failed(const Status& status) {
  if (!status.ok()) [[unlikely]]
    throw_status(status);
}

inline void throw_if_failed(const Status& status, const Communicator& communicator) {
  if (!status.ok()) [[unlikely]]
    throw_status(status, communicator);
}

template <typename T>
T take_or_throw(Result<T> result) {
  throw_if_failed(result.status());
  return result.take();
}

}  // namespace rdmacoll::torch_ext
