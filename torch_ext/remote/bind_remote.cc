// bind_remote: the classes of remote memory, as Python has them (rdmacoll/_C.pyi).
// Floor: torch_ext/remote. Thread: with the GIL.
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "torch_ext/remote/remote_face.h"

namespace rdmacoll::torch_ext {
namespace {

uint64_t update_own(const at::Tensor& element, const Update& update) {
  return update.apply_to(static_cast<std::byte*>(element.data_ptr()));
}

}  // namespace

void bind_remote(pybind11::module_& module) {
  namespace py = pybind11;
  py::class_<RemoteWork>(module, "RemoteWork")
      .def("done", &RemoteWork::done)
      .def("wait", &RemoteWork::wait)
      .def("result", &RemoteWork::result);
  py::class_<RemoteOpened, std::shared_ptr<RemoteOpened>>(module, "RemoteOpened")
      .def_property_readonly("nbytes", [](const RemoteOpened& self) { return self.info().bytes; })
      .def_property_readonly("writable",
                             [](const RemoteOpened& self) { return self.info().is_writable; })
      .def_property_readonly("has_versions",
                             [](const RemoteOpened& self) { return self.info().has_versions; })
      .def_property_readonly("meta",
                             [](const RemoteOpened& self) { return py::bytes(self.info().meta); })
      .def("read", &RemoteOpened::read)
      .def("read_rows", &RemoteOpened::read_rows)
      .def("write", &RemoteOpened::write)
      .def("write_rows", &RemoteOpened::write_rows)
      .def("fetch_add",
           [](const RemoteOpened& self, uint64_t offset, uint64_t operand, double timeout_s) {
             return self.update(offset, Update::add(operand), timeout_s);
           })
      .def("compare_swap",
           [](const RemoteOpened& self, uint64_t offset, uint64_t expected, uint64_t desired,
              double timeout_s) {
             return self.update(offset, Update::compare_swap(expected, desired), timeout_s);
           })
      .def("snapshot", &RemoteOpened::snapshot)
      .def("fence", &RemoteOpened::fence);
  py::class_<RemotePublication>(module, "RemotePublication")
      .def_property_readonly("version", &RemotePublication::version)
      .def("begin", &RemotePublication::begin)
      .def("complete", &RemotePublication::complete);
  py::class_<RemoteFace, RemoteFacePtr>(module, "Remote")
      .def(py::init(&RemoteFace::make))
      .def_static("endpoint_of", &RemoteFace::endpoint_of)
      .def("allocate", &RemoteFace::allocate)
      .def("holds", &RemoteFace::holds)
      .def("expose", &RemoteFace::expose)
      .def("publish", &RemoteFace::publish)
      .def("notified", &RemoteFace::notified)
      .def("wait_notified", &RemoteFace::wait_notified)
      // Of this process's own memory.
      .def_static("fetch_add",
                  [](const at::Tensor& element, uint64_t operand) {
                    return update_own(element, Update::add(operand));
                  })
      .def_static("compare_swap",
                  [](const at::Tensor& element, uint64_t expected, uint64_t desired) {
                    return update_own(element, Update::compare_swap(expected, desired));
                  })
      .def("revoke", &RemoteFace::revoke)
      .def("stats", &RemoteFace::stats)
      .def("open", &RemoteFace::open)
      .def("lend", &RemoteFace::lend)
      .def("allocate_there", &RemoteFace::allocate_there)
      .def("open_mailbox", &RemoteFace::open_mailbox)
      .def("close_mailbox", &RemoteFace::close_mailbox)
      .def("take", &RemoteFace::take)
      .def("post", &RemoteFace::post);
}

}  // namespace rdmacoll::torch_ext
