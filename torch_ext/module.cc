// The compiled module rdmacoll._C: bindings and nothing else. rdmacoll/_C.pyi has its types.
// Floor: torch_ext. Thread: with the GIL, which everything that may wait gives up.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/version.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "csrc/base/config.h"
#include "csrc/engine/connect/transport_table.h"
#include "csrc/engine/recorder/flight_dump.h"
#include "csrc/plan/choice/tuning.h"
#include "csrc/plan/selection/select.h"
#include "torch_ext/backend/backend.h"
#include "torch_ext/backend/create.h"
#include "torch_ext/base/errors.h"
#include "torch_ext/base/interrupt.h"
#include "torch_ext/heap/heap_allocator.h"
#include "torch_ext/join/process.h"
#include "torch_ext/ops/handles.h"
#include "torch_ext/order/bind_order.h"
#include "torch_ext/planned_group.h"
#include "torch_ext/ps/file_draft.h"
#include "torch_ext/ps/ps_face.h"
#include "torch_ext/remote/remote_face.h"
#include "torch_ext/remote/window.h"
#include "torch_ext/tensors/operand_trace.h"
#include "torch_ext/tensors/pins.h"

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
  std::string transports;
  for (const TransportRow& row : transport_table()) {
    transports += (transports.empty() ? "" : ", ") + std::string(row.name);
  }
  return {{"built for torch", TORCH_VERSION},
          {"compiler", "g++ " __VERSION__},
          {"transports", transports}};
}

// The device that a rank with this LOCAL_RANK would use, and why.
std::string explain_device_of(int64_t local_rank) {
  Config config = take_or_throw(Config::from_environment());
  config.place.local_rank = local_rank;
  return take_or_throw(explain_device(config));
}

// As JSON; empty where there is none.
std::string flight_dump_of_process() {
  const auto recorder = Process::instance().flight_recorder();
  return recorder != nullptr ? flight_dump(*recorder, "asked for") : "";
}

// Python gets signatures, but not the secret itself.
py::bytes sign(const std::string& text) {
  Mac mac{};
  {
    const WithoutGil without_gil;
    mac = take_or_throw(Process::instance().sign(text));
  }
  return {reinterpret_cast<const char*>(mac.data()), mac.size()};
}

using OptionsRef = c10::intrusive_ptr<RdmaBackend::Options>;

OptionsRef copy_of(const OptionsRef& options) {
  return c10::make_intrusive<RdmaBackend::Options>(*options);
}

OptionsRef make_options(RdmaBackend::Milliseconds timeout, const std::string& algorithm) {
  if (!algorithm.empty()) {
    const Status valid = check_algorithm("algorithm", algorithm);
    if (!valid.ok()) throw py::value_error(valid.message());
  }
  return c10::make_intrusive<RdmaBackend::Options>(timeout, algorithm);
}

constexpr const char* kOptionsHelp =
    R"(Options of one group, for pg_options of init_process_group, new_group and shrink_group.

timeout: a timedelta; how long an operation may take. Default: torch's, 30 minutes.
algorithm: which algorithm the group takes where it exists for a collective: "ring", "tree",
    "halving_doubling", "one_shot", "two_shot" or "direct". "" follows RDMACOLL_ALGO; "auto" lets
    rdmacoll choose. It must be the same on all ranks of the group.

Raises ValueError for an algorithm of another name.)";

constexpr const char* kBackendHelp =
    R"(The process group's backend "rdma", as init_process_group and new_group make it.

Its collectives and point-to-point operations are called through torch.distributed. Tensors are on
the CPU. Any thread may call it; all ranks of a group start its collectives in the same order.)";

void bind_options(py::module_& module) {
  py::class_<RdmaBackend::Options, c10d::Backend::Options, OptionsRef>(module, "Options",
                                                                       kOptionsHelp)
      .def(py::init(&make_options), py::arg("timeout") = kBackendDefaultTimeout,
           py::arg("algorithm") = "")
      .def_readonly("algorithm", &RdmaBackend::Options::algorithm)
      .def("__copy__", &copy_of)
      .def("__deepcopy__", [](const OptionsRef& self, const py::dict&) { return copy_of(self); });
}

using PathTuple = std::tuple<int, std::string, std::string>;

// Over what each peer is reached, and why: (rank, transport, reason).
std::vector<PathTuple> paths(const RdmaBackend& backend) {
  std::vector<PathTuple> paths;
  for (const PeerPath& path : backend.communicator().paths()) {
    paths.emplace_back(path.rank, path.transport, path.reason);
  }
  return paths;
}

// What set-up has cost this process so far.
std::map<std::string, uint64_t> counters(const RdmaBackend& backend) {
  const TransportCounters counters = backend.communicator().counters();
  return {{"registrations", counters.registrations},
          {"control_messages", counters.control_messages}};
}

// What an operation of so many bytes takes.
std::string algorithm_for(const RdmaBackend& backend, const std::string& collective,
                          uint64_t bytes) {
  return algorithm_name(backend.communicator().algorithm_for(collective_named(collective), bytes));
}

// All that it could take in this group.
std::vector<std::string> algorithms(const RdmaBackend& backend, const std::string& collective) {
  const Communicator& communicator = backend.communicator();
  std::vector<std::string> names;
  for (const Algorithm algorithm :
       algorithms_of(collective_named(collective), communicator.islands())) {
    names.emplace_back(algorithm_name(algorithm));
  }
  return names;
}

void bind_backend(py::module_& module) {
  py::class_<RdmaBackend, c10d::Backend, c10::intrusive_ptr<RdmaBackend>>(module, "RdmaBackend",
                                                                          kBackendHelp)
      .def_property_readonly("options", &RdmaBackend::getBackendOptions)
      .def("_paths", &paths)
      .def("_counters", &counters)
      .def("_address_of",
           [](const RdmaBackend& self, int rank) -> std::optional<py::bytes> {
             const auto address = self.communicator().address_of(rank);
             return address ? std::optional<py::bytes>(*address) : std::nullopt;
           })
      .def("_layout",
           [](const RdmaBackend& self) { return layout_name(self.communicator().islands()); })
      .def("_leave",
           [](RdmaBackend& self) {
             self.session().communicator().leave("the group was left on rank " +
                                                 std::to_string(self.getRank()));
           })
      .def("_lost_ranks", [](const RdmaBackend& self) { return self.communicator().lost_ranks(); })
      // The same as torch has them from 2.15 on.
      .def("_reconfigure_handle", &RdmaBackend::handle)
      .def("_reconfigure", &RdmaBackend::join_anew, py::arg("uuid"), py::arg("handles"),
           py::arg("timeout") = py::none(), py::call_guard<WithoutGil>())
      .def("_algorithm", &algorithm_for)
      .def("_algorithms", &algorithms)
      // torch calls it on ranks outside a group that is split off; they have no part in it.
      .def("perform_nocolor_split", [](RdmaBackend&, const py::object&) {});
}

// What rdmacoll/memory.py is made of.
void bind_heap(py::module_& module) {
  module.def("empty_in_heap", [](const std::vector<int64_t>& sizes, at::ScalarType dtype) {
    return empty_in_heap(sizes, dtype);
  });
  module.def("place_in_heap", &place_in_heap);
  module.def("is_in_heap", &is_in_heap);
  module.def("is_in_flight", &is_in_flight);
  module.def("serve_from_heap", &serve_from_heap);
  module.def("heap_stats", &heap_stats);
}

using MetTuple = std::tuple<uint64_t, at::Tensor, uint64_t, uint64_t, bool>;

std::vector<MetTuple> traced_operands() {
  std::vector<MetTuple> tuples;
  for (OperandTrace::Met& met : OperandTrace::instance().met()) {
    tuples.emplace_back(met.id, std::move(met.memory), met.bytes, met.operations, met.in_flight);
  }
  return tuples;
}

// What rdmacoll/placement.py is made of.
void bind_trace(py::module_& module) {
  module.def("start_tracing_operands", [] { return OperandTrace::instance().start(); });
  module.def("stop_tracing_operands", [] { OperandTrace::instance().stop(); });
  module.def("traced_operands", &traced_operands);
  module.def("serve_sizes_from_heap", &serve_sizes_from_heap);
  module.attr("SERVED_SIZES") = kServedSizes;
}

}  // namespace
}  // namespace rdmacoll::torch_ext

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace rdmacoll::torch_ext;
  check_torch();
  py::module_::import("torch.distributed");  // has the base classes
  bind_options(module);
  bind_backend(module);
  bind_heap(module);
  bind_trace(module);
  bind_planned_group(module);
  bind_remote(module);
  bind_ps(module);
  bind_file_draft(module);
  bind_window(module);
  bind_order(module);
  module.def(
      "create",
      [](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
         c10::intrusive_ptr<RdmaBackend::Options> options, std::string address, bool introduces) {
        return create_backend(store, rank, size, std::move(options),
                              {std::move(address), introduces});
      },
      py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("options"),
      py::arg("agent_address"), py::arg("agent_introduces"), py::call_guard<WithoutGil>());
  module.def(
      "create_without_ranks",
      [](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
         c10::intrusive_ptr<RdmaBackend::Options> options, std::string address) {
        auto membership = std::make_unique<Membership>(store, std::move(address));
        return c10::make_intrusive<RdmaBackend>(std::move(membership), rank, size,
                                                std::move(options));
      },
      py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("options"),
      py::arg("agent_address"));
  module.def("handle_of", &handle_of, py::arg("backend"));
  module.def("quiesce", [] { Process::instance().quiesce(); }, py::call_guard<WithoutGil>());
  module.def("sign", &sign, py::arg("text"));
  module.def("build_info", &build_info);
  module.def("flight_dump", &flight_dump_of_process, py::call_guard<WithoutGil>());
  module.def("explain_device", &explain_device_of, py::arg("local_rank"),
             py::call_guard<WithoutGil>());
}
