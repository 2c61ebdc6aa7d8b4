// bind_order. Floor: torch_ext/order. Thread: with the GIL.
#include "torch_ext/order/bind_order.h"

#include <c10/util/StringUtil.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "torch_ext/order/named_group.h"

namespace rdmacoll::torch_ext {
namespace {

namespace py = pybind11;

NamedRequest describe(NamedKind kind, const std::string& name, bool is_kept,
                      const std::vector<at::Tensor>& tensors, NamedOp op, double prescale,
                      double postscale, int32_t root, std::vector<int64_t> splits) {
  NamedRequest request{.name = name,
                       .kind = kind,
                       .op = op,
                       .is_kept = is_kept,
                       .root = root,
                       .prescale = prescale,
                       .postscale = postscale,
                       .tensors = {},
                       .splits = std::move(splits)};
  for (const at::Tensor& tensor : tensors) {
    request.tensors.push_back({c10::toString(tensor.scalar_type()), tensor.sizes().vec()});
  }
  return request;
}

}  // namespace

void bind_order(py::module_& module) {
  auto kinds = py::enum_<NamedKind>(module, "NamedKind");
#define X(name, text) kinds.value(#name, NamedKind::name);
  RDMACOLL_NAMED_KINDS(X)
#undef X
  auto ops = py::enum_<NamedOp>(module, "NamedOp");
#define X(name) ops.value(#name, NamedOp::name);
  RDMACOLL_NAMED_OPS(X)
#undef X
  py::class_<NamedTimes, std::shared_ptr<NamedTimes>>(module, "NamedTimes")
      .def_property_readonly("submitted_ns", &NamedTimes::submitted_ns)
      .def_property_readonly("agreed_ns", &NamedTimes::agreed_ns)
      .def_property_readonly("ended_ns", &NamedTimes::ended_ns)
      .def_property_readonly("has_failed", &NamedTimes::has_failed);
  module.def("times_of", &times_of, py::arg("work"), py::arg("begun_ns"));
  py::class_<NamedWork, NamedWorkPtr>(module, "NamedWork")
      .def("done", &NamedWork::done)
      .def("wait", &NamedWork::wait, py::arg("timeout_s") = -1.0)
      .def("outputs", &NamedWork::outputs)
      .def("rows", &NamedWork::rows)
      .def("last_joined", &NamedWork::last_joined)
      .def("times", &NamedWork::times);
  py::class_<Unsubmitted>(module, "Unsubmitted")
      .def_readonly("name", &Unsubmitted::name)
      .def_readonly("missing", &Unsubmitted::missing);
  py::class_<Late>(module, "Late")
      .def_readonly("asked_by", &Late::asked_by)
      .def_readonly("names", &Late::names)
      .def_readonly("more", &Late::more);
  py::class_<NamedGroup, std::shared_ptr<NamedGroup>>(module, "NamedGroup")
      .def(py::init(&NamedGroup::make), py::arg("tensors"), py::arg("names"))
      .def(
          "submit",
          [](NamedGroup& self, NamedKind kind, const std::string& name, bool is_kept,
             const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& outputs,
             NamedOp op, double prescale, double postscale, int32_t root,
             std::vector<int64_t> splits) {
            return self.submit(describe(kind, name, is_kept, inputs.empty() ? outputs : inputs, op,
                                        prescale, postscale, root, std::move(splits)),
                               inputs, outputs);
          },
          py::arg("kind"), py::arg("name"), py::arg("is_kept"), py::arg("inputs"),
          py::arg("outputs"), py::arg("op") = NamedOp::Sum, py::arg("prescale") = 1.0,
          py::arg("postscale") = 1.0, py::arg("root") = 0,
          py::arg("splits") = std::vector<int64_t>())
      .def("join", &NamedGroup::join)
      .def("ask_who_is_late", &NamedGroup::ask_who_is_late,
           py::call_guard<py::gil_scoped_release>())
      .def("take_late", &NamedGroup::take_late, py::call_guard<py::gil_scoped_release>())
      .def("messages", &NamedGroup::messages, py::call_guard<py::gil_scoped_release>())
      .def("close", &NamedGroup::close);
}

}  // namespace rdmacoll::torch_ext
