// Status to exception. Floor: torch_ext/base.
#include "torch_ext/base/errors.h"

#include <c10/util/Exception.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "torch_ext/base/process_life.h"

namespace rdmacoll::torch_ext {

namespace {

std::string message_of(const Status& status) {
  // torch's users and tests look for these two words.
  const char* timed_out = status.code() == StatusCode::Timeout ? "Timed out waiting: " : "";
  return std::string("rdma: ") + timed_out + status.message();
}

bool may_be_of_dead_ranks(StatusCode code) {
  return code == StatusCode::PeerFailed || code == StatusCode::Timeout ||
         code == StatusCode::Aborted || code == StatusCode::System;
}

}  // namespace

std::exception_ptr to_exception(const Status& status) {
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  const std::string message = message_of(status);
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

void throw_status(const Status& status, const Communicator& communicator) {
  namespace py = pybind11;
  if (!may_be_of_dead_ranks(status.code()) || ProcessLife::instance().leaving())
    throw_status(status);
  const std::vector<int> lost = communicator.lost_ranks();
  if (lost.empty()) throw_status(status);
  const py::gil_scoped_acquire gil;
  const py::object type = py::module_::import("rdmacoll.failure").attr("DeadRankError");
  const py::object error = type(message_of(status), py::tuple(py::cast(lost)));
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::error_already_set();
}

}  // namespace rdmacoll::torch_ext
