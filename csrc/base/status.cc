// Status: the cold half. Floor: base.
#include "csrc/base/status.h"

#include <cstring>

namespace rdmacoll {

const char* status_code_name(StatusCode code) {
  switch (code) {
#define X(name)          \
  case StatusCode::name: \
    return #name;
    RDMACOLL_STATUS_CODES(X)
#undef X
  }
  return "unknown";
}

Status::Status(StatusCode code, std::string message) {
  RDMACOLL_CHECK(code != StatusCode::Ok);
  failure_ = std::make_shared<const Failure>(Failure{code, std::move(message)});
}

Status Status::from_errno(const std::string& what, int error_number) {
  return Status(StatusCode::System, what + ": " + std::strerror(error_number));
}

const std::string& Status::message() const {
  static const std::string none;
  return failure_ ? failure_->message : none;
}

}  // namespace rdmacoll
