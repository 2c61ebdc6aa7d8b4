// Status to exception. Floor: torch_ext.
#include "torch_ext/errors.h"

#include <c10/util/Exception.h>

#include <string>

namespace rdmacoll::torch_ext {

std::exception_ptr to_exception(const Status& status) {
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  // torch's users and tests look for these two words.
  const char* timed_out = status.code() == StatusCode::Timeout ? "Timed out waiting: " : "";
  const std::string message = std::string("rdma: ") + timed_out + status.message();
  switch (status.code()) {
    case StatusCode::Unsupported:
      return std::make_exception_ptr(c10::NotImplementedError(here, message));
    case StatusCode::Timeout:
    case StatusCode::Mismatch:
    case StatusCode::Aborted:
      return std::make_exception_ptr(c10::DistBackendError(here, message));
    case StatusCode::PeerFailed:
    case StatusCode::System:
      return std::make_exception_ptr(c10::DistNetworkError(here, message));
    case StatusCode::Ok:
    case StatusCode::InvalidArgument:
    case StatusCode::Interrupted:  // carries an exception of its own (interrupt.h)
      break;
  }
  return std::make_exception_ptr(c10::Error(here, message));
}

void throw_status(const Status& status) { std::rethrow_exception(to_exception(status)); }

}  // namespace rdmacoll::torch_ext
