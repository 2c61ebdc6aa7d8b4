// The compiled module rdmacoll._fuse: the mount, for Python.
#include <pybind11/pybind11.h>

#include "fuse_ext/mount.h"

namespace py = pybind11;

PYBIND11_MODULE(_fuse, module) {
  using rdmacoll::files::Tables;
  using rdmacoll::fuse::Mount;
  py::class_<Mount>(module, "Mount")
      // tables: of rdmacoll._C.PsClient.file_tables().
      .def(py::init([](const py::capsule& tables, py::object names) {
        const auto& shared = *tables.get_pointer<std::shared_ptr<Tables>>();
        return std::make_unique<Mount>(shared, std::move(names));
      }))
      .def("start", &Mount::start, py::call_guard<py::gil_scoped_release>())
      .def("has_ended", &Mount::has_ended)
      .def("stop", &Mount::stop, py::call_guard<py::gil_scoped_release>());
}
