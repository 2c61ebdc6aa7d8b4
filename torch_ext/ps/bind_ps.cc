// bind_ps: the classes of the parameter server, as Python has them (rdmacoll/_C.pyi).
// Floor: torch_ext/ps. Thread: with the GIL.
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "csrc/ps/table/saved.h"
#include "torch_ext/ps/file_tables.h"
#include "torch_ext/ps/ps_face.h"
#include "torch_ext/remote/remote_errors.h"

namespace rdmacoll::torch_ext {

namespace {

namespace py = pybind11;
using ps::Initial;
using ps::TableKind;
using ps::TableSpec;

void check_rates(const Optimizer& made, const PsRates& rates) {
  const ps::OwnRates own{rates.first, rates.second};
  raise_if_failed(check(made, own.over(rates_of(made))));
}

void bind_tables(pybind11::module_& module) {
  py::enum_<OptimizerKind>(module, "OptimizerKind")
      .value("SGD", OptimizerKind::Sgd)
      .value("ADAGRAD", OptimizerKind::Adagrad)
      .value("ROWWISE_ADAGRAD", OptimizerKind::RowwiseAdagrad)
      .value("ADAM", OptimizerKind::Adam)
      .value("ADAMW", OptimizerKind::AdamW);
  py::class_<Optimizer>(module, "PsOptimizer")
      .def(py::init([](OptimizerKind kind) { return Optimizer{.kind = kind}; }))
      .def_readonly("kind", &Optimizer::kind)
      .def_readwrite("lr", &Optimizer::lr)
      .def_readwrite("momentum", &Optimizer::momentum)
      .def_readwrite("dampening", &Optimizer::dampening)
      .def_readwrite("weight_decay", &Optimizer::weight_decay)
      .def_readwrite("nesterov", &Optimizer::nesterov)
      .def_readwrite("lr_decay", &Optimizer::lr_decay)
      .def_readwrite("initial_accumulator_value", &Optimizer::initial_accumulator_value)
      .def_readwrite("eps", &Optimizer::eps)
      .def_readwrite("beta1", &Optimizer::beta1)
      .def_readwrite("beta2", &Optimizer::beta2)
      .def_readwrite("maximize", &Optimizer::maximize)
      .def("check", [](const Optimizer& self) { raise_if_failed(check(self)); })
      .def("check_rates", check_rates);
  py::enum_<Initial::Kind>(module, "InitialKind")
      .value("CONSTANT", Initial::Kind::Constant)
      .value("UNIFORM", Initial::Kind::Uniform)
      .value("NORMAL", Initial::Kind::Normal);
  py::class_<TableSpec>(module, "PsTableSpec")
      .def_static("dense",
                  [](std::string name, uint64_t elements, std::optional<Optimizer> optimizer) {
                    return TableSpec{.name = std::move(name),
                                     .kind = TableKind::Dense,
                                     .elements = elements,
                                     .optimizer = optimizer};
                  })
      // The same, whose workers go in step.
      .def("paced",
           [](TableSpec self, uint64_t elements, bool is_sync) {
             self.pace = ps::Pace{elements, is_sync};
             return self;
           })
      .def_static(
          "rows",
          [](std::string name, uint32_t dim, uint64_t rows, std::optional<Optimizer> optimizer,
             Initial::Kind kind, double first, double second, uint64_t seed) {
            return TableSpec{.name = std::move(name),
                             .kind = TableKind::Rows,
                             .dim = dim,
                             .rows = rows,
                             .optimizer = optimizer,
                             .initial = {kind, first, second, seed}};
          })
      .def_static("parse",
                  [](const std::string& spec) { return take_or_raise(ps::parse_table_spec(spec)); })
      .def_property_readonly("is_rows",
                             [](const TableSpec& self) { return self.kind == TableKind::Rows; })
      .def_readonly("elements", &TableSpec::elements)
      .def_readonly("dim", &TableSpec::dim)
      .def_readonly("optimizer", &TableSpec::optimizer)
      // What is kept: arrays of a dense table, floats of a row (ps/table/saved.h).
      .def_property_readonly("arrays", &ps::arrays_of)
      .def_property_readonly("row_floats", &ps::row_floats)
      // Raises ValueError for what no table can be.
      .def("encode", [](const TableSpec& self) {
        raise_if_failed(ps::check(self));
        return py::bytes(ps::encode(self));
      });
}

}  // namespace

void bind_ps(pybind11::module_& module) {
  bind_tables(module);
  module.attr("PS_BUCKETS") = ps::kBuckets;
  module.attr("PS_SHARD_ELEMENTS") = ps::kShardElements;
  module.def("ps_spread",
             [](uint32_t servers, uint32_t replicas, const std::vector<uint32_t>& hosts) {
               return py::bytes(ps::BucketMap::spread(servers, replicas, hosts).encode());
             });
  module.def("ps_without", [](const std::string& map, ps::ServerId server) {
    return py::bytes(take_or_raise(ps::BucketMap::parse(map)).without(server).encode());
  });
  module.def("ps_servers", [](const std::string& map) {
    return take_or_raise(ps::BucketMap::parse(map)).servers();
  });
  py::class_<PsServer>(module, "PsServer")
      .def(py::init<RemoteFacePtr, const std::string&, ps::ServerId, uint32_t, const std::string&,
                    uint64_t, const std::vector<uint32_t>&, bool>())
      .def("call", &PsServer::call)
      .def("give_up", &PsServer::give_up)
      .def("wish",
           [](const PsServer& self) -> std::optional<std::pair<py::bytes, py::bytes>> {
             const auto wish = self.wish();
             if (!wish) return std::nullopt;
             return std::pair(py::bytes(wish->known.encode()), py::bytes(wish->wanted.encode()));
           })
      .def("wait_wish", &PsServer::wait_wish)
      .def("adopt", &PsServer::adopt)
      .def("now_ns", &PsServer::now_ns)
      .def("drop", &PsServer::drop)
      .def("hear", &PsServer::hear)
      .def("serve", &PsServer::serve)
      .def("stop", &PsServer::stop)
      .def("stats", &PsServer::stats)
      .def("rows_of", &PsServer::rows_of)
      .def("steps_of", &PsServer::steps_of);
  py::class_<PsBatch>(module, "PsBatch").def("done", &PsBatch::done).def("wait", &PsBatch::wait);
  py::class_<PsClient, PsClientPtr>(module, "PsClient")
      .def(py::init(&PsClient::make))
      .def("create", &PsClient::create)
      .def("lend", &PsClient::lend)
      .def("assign", &PsClient::assign)
      .def("push", &PsClient::push)
      .def("push_step", &PsClient::push_step)
      .def("pull_steps", &PsClient::pull_steps)
      .def("begin_generation", &PsClient::begin_generation)
      .def("rebalance",
           [](const PsClient& self, double over_s, double timeout_s) {
             const auto done = self.rebalance(over_s, timeout_s);
             return std::tuple(done.before, done.after, done.buckets);
           })
      .def("push_rows", &PsClient::push_rows)
      .def("pull", &PsClient::pull)
      .def("pull_rows", &PsClient::pull_rows)
      .def("save_shard", &PsClient::save_shard)
      .def("restore_shard", &PsClient::restore_shard)
      .def("list_rows", &PsClient::list_rows)
      .def("save_rows", &PsClient::save_rows)
      .def("restore_rows", &PsClient::restore_rows)
      .def("empty_rows", &PsClient::empty_rows)
      // For rdmacoll._fuse: a shared_ptr of csrc/files/tables.h.
      .def("file_tables", [](const PsClientPtr& self, double timeout_s) {
        using Shared = std::shared_ptr<files::Tables>;
        auto* const shared = new Shared(file_tables(self, timeout_s));
        return py::capsule(shared, [](void* held) { delete static_cast<Shared*>(held); });
      });
}

}  // namespace rdmacoll::torch_ext
