// The compiled module rdmacoll._C: bindings and nothing else. rdmacoll/_C.pyi has its types.
// Floor: torch_ext. Thread: with the GIL, which everything that may wait gives up.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/version.h>

#include <map>
#include <string>

#include "torch_ext/backend.h"
#include "torch_ext/create.h"
#include "torch_ext/process.h"

namespace rdmacoll::torch_ext {
namespace {

// The layout of torch's classes changes between releases: another one must not get any further.
void check_torch() {
  const auto running = py::module_::import("torch").attr("__version__").cast<std::string>();
  const std::string built = TORCH_VERSION;
  if (running.substr(0, running.find('+')) == built) return;
  throw py::import_error("rdmacoll was built for torch " + built + ", but this is torch " +
                         running +
                         "; rebuild it with: pip install --no-build-isolation --force-reinstall "
                         "--no-deps rdmacoll");
}

std::map<std::string, std::string> build_info() {
  return {
      {"built for torch", TORCH_VERSION}, {"compiler", "g++ " __VERSION__}, {"transports", "shm"}};
}

using OptionsRef = c10::intrusive_ptr<RdmaBackend::Options>;

OptionsRef copy_of(const OptionsRef& options) {
  return c10::make_intrusive<RdmaBackend::Options>(*options);
}

void bind_options(py::module_& module) {
  py::class_<RdmaBackend::Options, c10d::Backend::Options, OptionsRef>(module, "Options")
      .def(py::init([](RdmaBackend::Milliseconds timeout) {
             return c10::make_intrusive<RdmaBackend::Options>(timeout);
           }),
           py::arg("timeout") = kBackendDefaultTimeout)
      .def("__copy__", &copy_of)
      .def("__deepcopy__", [](const OptionsRef& self, const py::dict&) { return copy_of(self); });
}

void bind_backend(py::module_& module) {
  py::class_<RdmaBackend, c10d::Backend, c10::intrusive_ptr<RdmaBackend>>(module, "RdmaBackend")
      .def_property_readonly("options", &RdmaBackend::getBackendOptions)
      // torch calls it on ranks outside a group that is split off; they have no part in it.
      .def("perform_nocolor_split", [](RdmaBackend&, const py::object&) {});
}

}  // namespace
}  // namespace rdmacoll::torch_ext

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace rdmacoll::torch_ext;
  check_torch();
  py::module_::import("torch.distributed");  // has the base classes
  bind_options(module);
  bind_backend(module);
  module.def("create", &create_backend, py::arg("store"), py::arg("rank"), py::arg("size"),
             py::arg("options"), py::arg("agent_address"),
             py::call_guard<py::gil_scoped_release>());
  module.def(
      "quiesce", [] { Process::instance().quiesce(); }, py::call_guard<py::gil_scoped_release>());
  module.def("build_info", &build_info);
}
