// Status to exception, of remote memory. Floor: torch_ext/remote. Thread: with the GIL.
#include "torch_ext/remote/remote_errors.h"

#include <pybind11/pybind11.h>

namespace rdmacoll::torch_ext {
namespace {

pybind11::object type_of(StatusCode code) {
  namespace py = pybind11;
  switch (code) {
    case StatusCode::InvalidArgument:
      return py::reinterpret_borrow<py::object>(PyExc_ValueError);
    case StatusCode::Unsupported:
      return py::reinterpret_borrow<py::object>(PyExc_NotImplementedError);
    case StatusCode::System:
      return py::reinterpret_borrow<py::object>(PyExc_OSError);
    case StatusCode::Timeout:
      return py::reinterpret_borrow<py::object>(PyExc_TimeoutError);
    case StatusCode::Aborted:
      return py::module_::import("rdmacoll.remote").attr("RevokedError");
    default:
      return py::module_::import("rdmacoll.remote").attr("PeerError");
  }
}

}  // namespace

void raise_status(const Status& status) {
  const pybind11::object type = type_of(status.code());
  PyErr_SetString(type.ptr(), status.message().c_str());
  throw pybind11::error_already_set();
}

}  // namespace rdmacoll::torch_ext
