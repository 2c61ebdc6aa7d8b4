// Status and Result: how an operating error travels. The first function that knows says what is
// wrong and what to do about it; the others pass it on. Exceptions are made of it in torch_ext
// only. Floor: base. Thread: values, any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "csrc/base/check.h"

namespace rdmacoll {

#define RDMACOLL_STATUS_CODES(X)                                                   \
  X(Ok)                                                                            \
  X(InvalidArgument) /* the caller's value; nothing has moved     */               \
  X(Unsupported)     /* a right request that this build or machine cannot serve */ \
  X(Mismatch)        /* ranks disagree about the operation        */               \
  X(Timeout)         /* a deadline passed                         */               \
  X(PeerFailed)      /* a peer died, left or became unreachable   */               \
  X(Aborted)         /* abort() or an earlier failure of the group */              \
  X(Interrupted)     /* the caller's interrupt check said stop    */               \
  X(System)          /* the operating system refused something    */

enum class StatusCode {
#define X(name) name,
  RDMACOLL_STATUS_CODES(X)
#undef X
};

const char* status_code_name(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // Ok, and free of allocation
  Status(StatusCode code, std::string message);

  // System, with the text of `error_number` behind what was tried.
  static Status from_errno(const std::string& what, int error_number);

  bool ok() const { return !failure_; }
  StatusCode code() const { return failure_ ? failure_->code : StatusCode::Ok; }
  const std::string& message() const;

 private:
  struct Failure {
    StatusCode code;
    std::string message;
  };
  std::shared_ptr<const Failure> failure_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) { RDMACOLL_CHECK(!status_.ok()); }

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() {
    RDMACOLL_CHECK(value_.has_value());
    return *value_;
  }
  T take() { return std::move(value()); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace rdmacoll

#define RDMACOLL_RETURN_IF_ERROR(expression)                         \
  do {                                                               \
    if (::rdmacoll::Status s_ = (expression); !s_.ok()) [[unlikely]] \
      return s_;                                                     \
  } while (false)
