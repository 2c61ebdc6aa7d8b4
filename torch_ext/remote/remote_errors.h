// Where a Status of remote memory becomes an exception of Python's own:
//
//   InvalidArgument       ValueError
//   Unsupported           NotImplementedError
//   Timeout               TimeoutError
//   Aborted               rdmacoll.remote.RevokedError
//   System                OSError
//   the others            rdmacoll.remote.PeerError
//
// Floor: torch_ext/remote. Thread: with the GIL.
#pragma once

#include <utility>

#include "csrc/base/status.h"

namespace rdmacoll::torch_ext {

[[noreturn]] void raise_status(const Status& status);

inline void raise_if_failed(const Status& status) {
  if (!status.ok()) [[unlikely]]
    raise_status(status);
}

template <typename T>
T take_or_raise(Result<T> result) {
  raise_if_failed(result.status());
  return result.take();
}

}  // namespace rdmacoll::torch_ext
