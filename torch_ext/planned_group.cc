// A planned group, and its plans as plain values. rdmacoll/_C.pyi has their types.
#include "torch_ext/planned_group.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/config.h"
#include "csrc/engine/channel/layout.h"
#include "csrc/engine/endpoint.h"
#include "csrc/plan/choice/choices.h"
#include "csrc/plan/cost/forecast.h"
#include "csrc/plan/selection/select.h"

namespace rdmacoll::torch_ext {
namespace {

namespace py = pybind11;

// A tensor of a tebibyte: what all ranks of thousands of hosts send is still counted in 64 bits.
constexpr int64_t kBytesMost = int64_t{1} << 40;

[[noreturn]] void refuse(const std::string& argument, const std::string& why) {
  throw py::value_error(argument + ": " + why);
}

template <typename T>
T value_or_refuse(Result<T> result, const std::string& prefix = "") {
  if (!result.ok()) throw py::value_error(prefix + result.status().message());
  return result.take();
}

template <typename List>
std::string listed(const List& items, const char* (*name)(typename List::value_type)) {
  std::string list;
  for (const auto item : items) list += (list.empty() ? "" : ", ") + std::string(name(item));
  return list;
}

// (buffer, channel, rank, first block, blocks, bytes of the whole operation)
using OperandTuple = std::tuple<const char*, int, int, int, int, uint64_t>;
// (kind, counter, channel, peer, finishes, first block, blocks, sources, destinations)
using StepTuple = std::tuple<const char*, const char*, int, int, bool, int, int,
                             std::vector<OperandTuple>, std::vector<OperandTuple>>;
using Lanes = std::vector<std::vector<StepTuple>>;

const char* kind_name(StepKind kind) {
  constexpr const char* kNames[] = {"wait", "signal", "copy", "reduce"};
  return kNames[static_cast<size_t>(kind)];
}

const char* buffer_name(Buffer buffer) {
  constexpr const char* kNames[] = {"input", "output", "slot", "peer_slot", "stage", "peer_stage"};
  return kNames[static_cast<size_t>(buffer)];
}

StepTuple step_tuple(const Plan& plan, const Step& step, const EvenTiling& whole) {
  std::vector<OperandTuple> sources, destinations;
  const bool moves = step.kind == StepKind::Copy || step.kind == StepKind::Reduce;
  for (uint16_t i = 0; moves && i < step.operands; ++i) {
    const Operand& operand = plan.operands[step.first_operand + i];
    auto& side = i + step.destinations < step.operands ? sources : destinations;
    side.emplace_back(buffer_name(operand.buffer), operand.channel, operand.rank,
                      operand.blocks.first, operand.blocks.count, whole.bytes_of(operand.blocks));
  }
  const char* counter = moves ? "" : step.counter == Counter::Data ? "data" : "credit";
  return {kind_name(step.kind),   counter,           step.channel,      step.peer,
          step.finishes,          step.blocks.first, step.blocks.count, std::move(sources),
          std::move(destinations)};
}

class PlannedGroup {
 public:
  PlannedGroup(const std::string& hosts, int64_t root)
      : islands_(value_or_refuse(Islands::of_shape(hosts), "hosts: ")),
        root_(checked_rank("root", root)),
        config_(value_or_refuse(Config::from_environment())) {
    const Status known = check_algorithm("RDMACOLL_ALGO", config_.algorithm);
    if (!known.ok()) throw py::value_error(known.message());
    tuning_ = value_or_refuse(tuning_of(config_));
    const Layout layout = Layout::within(islands_.world(), config_.block_bytes);
    room_ = {layout.slot_bytes(), layout.stage_bytes()};
  }

  void use_tuning(const std::string& text) { tuning_ = value_or_refuse(Tuning::parse(text)); }

  // A table says what links cost, and not what they do by default.
  bool measured_links() const { return tuning_.links() != Links(); }

  std::string shape() const { return islands_.shape(); }

  // How many ranks each has.
  std::vector<uint32_t> hosts() const {
    std::vector<uint32_t> sizes;
    for (uint32_t i = 0; i < islands_.count(); ++i) sizes.push_back(islands_.size(i));
    return sizes;
  }

  std::vector<std::string> algorithms(const std::string& collective) const {
    std::vector<std::string> names;
    for (const Algorithm each : algorithms_of(collective_named(collective), islands_)) {
      names.emplace_back(algorithm_name(each));
    }
    return names;
  }

  // What an operation of so many bytes takes.
  std::string chosen(const std::string& collective, int64_t bytes) const {
    const Choices choices(tuning_, islands_, room_, preference_of(config_));
    return algorithm_name(choices.choose(collective_named(collective), checked_bytes(bytes)));
  }

  std::map<std::string, int64_t> forecast(const std::string& collective,
                                          const std::string& algorithm, int64_t bytes) {
    const auto [operation, taken] = existing(collective, algorithm);
    const uint64_t size = checked_bytes(bytes);
    const Forecast& forecast = forecast_of(operation, taken);
    return {{"time_ns", forecast.time_ns(size, room_, tuning_.links())},
            {"out_bytes", static_cast<int64_t>(forecast.out_bytes(size))},
            {"in_bytes", static_cast<int64_t>(forecast.in_bytes(size))},
            {"network_latencies", forecast.chain().network},
            {"memory_latencies", forecast.chain().memory},
            {"tiles", static_cast<int64_t>(forecast.tiles(size, room_))}};
  }

  // The blocks of the operation, and one rank's lanes.
  std::pair<int, Lanes> plan(const std::string& collective, const std::string& algorithm,
                             int64_t rank, int64_t bytes) const {
    const auto [operation, taken] = existing(collective, algorithm);
    const Plan plan = make_plan(operation, taken, checked_rank("rank", rank), islands_, root_);
    const EvenTiling whole = EvenTiling::whole(plan, checked_bytes(bytes));
    Lanes lanes;
    for (const Lane& lane : plan.lanes) {
      auto& steps = lanes.emplace_back();
      for (uint32_t i = 0; i < lane.steps; ++i) {
        steps.push_back(step_tuple(plan, plan.steps[lane.first_step + i], whole));
      }
    }
    return {plan.blocks, std::move(lanes)};
  }

 private:
  uint16_t checked_rank(const std::string& argument, int64_t rank) const {
    if (rank < 0 || rank >= islands_.world()) {
      refuse(argument, std::to_string(rank) + " is none of " + shape() + "; give 0 to " +
                           std::to_string(islands_.world() - 1));
    }
    return static_cast<uint16_t>(rank);
  }

  static uint64_t checked_bytes(int64_t bytes) {
    if (bytes < 0 || bytes > kBytesMost) {
      refuse("bytes", std::to_string(bytes) + " is not possible; give 0 to 1T");
    }
    return static_cast<uint64_t>(bytes);
  }

  std::pair<Collective, Algorithm> existing(const std::string& collective,
                                            const std::string& algorithm) const {
    const Collective operation = collective_named(collective);
    const auto found = algorithm_by_name(algorithm);
    if (!found || !exists(operation, *found, islands_)) {
      refuse("algorithm", "'" + algorithm + "' is none of " + collective + " on " + shape() +
                              "; there are " +
                              listed(algorithms_of(operation, islands_), &algorithm_name));
    }
    return {operation, *found};
  }

  const Forecast& forecast_of(Collective collective, Algorithm algorithm) {
    return forecasts_.try_emplace({collective, algorithm}, collective, algorithm, islands_, root_)
        .first->second;
  }

  Islands islands_;
  uint16_t root_;
  Config config_;
  Tuning tuning_;
  Room room_;
  // Those that were asked for. They hold for any links, and to build one takes up to milliseconds:
  // who fits links to times asks for each a thousand times.
  std::map<std::pair<Collective, Algorithm>, Forecast> forecasts_;
};

}  // namespace

Collective collective_named(const std::string& name) {
  if (const auto found = collective_by_name(name)) return *found;
  std::vector<Collective> all;
  for (size_t index = 0; index < kCollectives; ++index) {
    all.push_back(static_cast<Collective>(index));
  }
  refuse("collective", "'" + name + "' is none; there are " + listed(all, &collective_name));
}

void bind_planned_group(py::module_& module) {
  py::class_<PlannedGroup>(module, "PlannedGroup")
      .def(py::init<const std::string&, int64_t>(), py::arg("hosts"), py::arg("root"))
      .def("use_tuning", &PlannedGroup::use_tuning, py::arg("text"))
      .def_property_readonly("shape", &PlannedGroup::shape)
      .def_property_readonly("hosts", &PlannedGroup::hosts)
      .def_property_readonly("measured_links", &PlannedGroup::measured_links)
      .def("algorithms", &PlannedGroup::algorithms, py::arg("collective"))
      .def("chosen", &PlannedGroup::chosen, py::arg("collective"), py::arg("bytes"))
      .def("forecast", &PlannedGroup::forecast, py::arg("collective"), py::arg("algorithm"),
           py::arg("bytes"))
      .def("plan", &PlannedGroup::plan, py::arg("collective"), py::arg("algorithm"),
           py::arg("rank"), py::arg("bytes"));
}

}  // namespace rdmacoll::torch_ext
