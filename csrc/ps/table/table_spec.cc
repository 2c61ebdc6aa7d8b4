// TableSpec. Floor: ps/table. Thread: values.
#include "csrc/ps/table/table_spec.h"

#include <charconv>
#include <cmath>

#include "csrc/base/printable.h"
#include "csrc/engine/connect/tagged_fields.h"

namespace rdmacoll::ps {
namespace {

std::string text_of(uint64_t number) { return std::to_string(number); }

// All bits of it.
std::string text_of(double number) {
  char text[64];
  const auto [end, error] =
      std::to_chars(std::begin(text), std::end(text), number, std::chars_format::hex);
  return std::string(text, end);
}

std::string text_of(bool is) { return is ? "1" : "0"; }

// Takes numbers out of fields; whether all were there is said at the end.
class Taker {
 public:
  explicit Taker(const TaggedFields& fields) : fields_(fields) {}

  template <typename Number>
  Number take(const char* name) {
    Number number{};
    const std::string& text = field_of(fields_, name);
    const auto [end, error] = parse(text, number);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) all_good_ = false;
    return number;
  }
  // As a number that is at most `most`.
  template <typename Kind>
  Kind take_kind(const char* name, Kind most) {
    const auto number = take<uint8_t>(name);
    if (number > static_cast<uint8_t>(most)) all_good_ = false;
    return static_cast<Kind>(number);
  }
  bool take_flag(const char* name) { return take_kind<uint8_t>(name, 1) == 1; }
  bool all_good() const { return all_good_; }

 private:
  template <typename Number>
  static std::from_chars_result parse(const std::string& text, Number& number) {
    const char* const end = text.data() + text.size();
    if constexpr (std::is_floating_point_v<Number>) {
      return std::from_chars(text.data(), end, number, std::chars_format::hex);
    } else {
      return std::from_chars(text.data(), end, number);
    }
  }

  const TaggedFields& fields_;
  bool all_good_ = true;
};

void encode(const Optimizer& optimizer, TaggedFields& fields) {
  fields["optimizer"] = text_of(static_cast<uint64_t>(optimizer.kind));
  fields["lr"] = text_of(optimizer.lr);
  fields["momentum"] = text_of(optimizer.momentum);
  fields["dampening"] = text_of(optimizer.dampening);
  fields["weight_decay"] = text_of(optimizer.weight_decay);
  fields["nesterov"] = text_of(optimizer.nesterov);
  fields["lr_decay"] = text_of(optimizer.lr_decay);
  fields["accumulator"] = text_of(optimizer.initial_accumulator_value);
  fields["eps"] = text_of(optimizer.eps);
  fields["beta1"] = text_of(optimizer.beta1);
  fields["beta2"] = text_of(optimizer.beta2);
  fields["maximize"] = text_of(optimizer.maximize);
}

Optimizer take_optimizer(Taker& from) {
  Optimizer optimizer;
  optimizer.kind = from.take_kind("optimizer", OptimizerKind::AdamW);
  optimizer.lr = from.take<double>("lr");
  optimizer.momentum = from.take<double>("momentum");
  optimizer.dampening = from.take<double>("dampening");
  optimizer.weight_decay = from.take<double>("weight_decay");
  optimizer.nesterov = from.take_flag("nesterov");
  optimizer.lr_decay = from.take<double>("lr_decay");
  optimizer.initial_accumulator_value = from.take<double>("accumulator");
  optimizer.eps = from.take<double>("eps");
  optimizer.beta1 = from.take<double>("beta1");
  optimizer.beta2 = from.take<double>("beta2");
  optimizer.maximize = from.take_flag("maximize");
  return optimizer;
}

Status wrong(const TableSpec& spec, const std::string& what) {
  return Status(StatusCode::InvalidArgument,
                "table '" + printable(spec.name, kTableNameBytesMax) + "': " + what);
}

Status check(const TableSpec& spec, const Pace& pace) {
  if (spec.kind != TableKind::Dense) return wrong(spec, "workers go in step in dense tables alone");
  if (pace.elements == 0 || pace.elements > spec.elements) {
    return wrong(spec, std::to_string(pace.elements) + " of its elements are pushed; give 1 to " +
                           std::to_string(spec.elements));
  }
  return Status();
}

}  // namespace

Status check(const TableSpec& spec) {
  if (spec.name.empty() || spec.name.size() > kTableNameBytesMax) {
    return wrong(spec, "its name has " + std::to_string(spec.name.size()) +
                           " bytes; a name has 1 to " + std::to_string(kTableNameBytesMax));
  }
  if (spec.kind == TableKind::Dense && (spec.elements == 0 || spec.elements > kMostElements)) {
    return wrong(spec, std::to_string(spec.elements) + " elements; a dense table has 1 to " +
                           std::to_string(kMostElements));
  }
  if (spec.kind == TableKind::Rows && (spec.dim == 0 || spec.dim > kMostDim)) {
    return wrong(spec, "dim=" + std::to_string(spec.dim) + "; a row has 1 to " +
                           std::to_string(kMostDim) + " elements");
  }
  if (!std::isfinite(spec.initial.first) || !std::isfinite(spec.initial.second)) {
    return wrong(spec, "the values that its rows begin with are not finite");
  }
  if (spec.kind == TableKind::Dense && spec.optimizer &&
      spec.optimizer->kind == OptimizerKind::RowwiseAdagrad) {
    return wrong(spec, "row-wise Adagrad is for tables of rows; take Adagrad for a dense one");
  }
  if (spec.pace) RDMACOLL_RETURN_IF_ERROR(check(spec, *spec.pace));
  return spec.optimizer ? check(*spec.optimizer) : Status();
}

std::string encode(const TableSpec& spec) {
  TaggedFields fields{{"name", spec.name},
                      {"kind", text_of(static_cast<uint64_t>(spec.kind))},
                      {"elements", text_of(spec.elements)},
                      {"dim", text_of(uint64_t{spec.dim})},
                      {"rows", text_of(spec.rows)},
                      {"initial", text_of(static_cast<uint64_t>(spec.initial.kind))},
                      {"first", text_of(spec.initial.first)},
                      {"second", text_of(spec.initial.second)},
                      {"seed", text_of(spec.initial.seed)}};
  if (spec.optimizer) encode(*spec.optimizer, fields);
  if (spec.pace) {
    fields["paced"] = text_of(spec.pace->elements);
    fields["sync"] = text_of(spec.pace->is_sync);
  }
  return rdmacoll::encode(fields);
}

Result<TableSpec> parse_table_spec(const std::string& bytes) {
  auto fields = parse_tagged_fields(bytes);
  if (!fields.ok()) return fields.status();
  Taker from(fields.value());
  TableSpec spec;
  spec.name = field_of(fields.value(), "name");
  spec.kind = from.take_kind("kind", TableKind::Rows);
  spec.elements = from.take<uint64_t>("elements");
  spec.dim = from.take<uint32_t>("dim");
  spec.rows = from.take<uint64_t>("rows");
  spec.initial.kind = from.take_kind("initial", Initial::Kind::Normal);
  spec.initial.first = from.take<double>("first");
  spec.initial.second = from.take<double>("second");
  spec.initial.seed = from.take<uint64_t>("seed");
  if (fields.value().contains("optimizer")) spec.optimizer = take_optimizer(from);
  if (fields.value().contains("paced")) {
    spec.pace = {from.take<uint64_t>("paced"), from.take_flag("sync")};
  }
  if (!from.all_good()) {
    return Status(StatusCode::InvalidArgument,
                  "what describes a table makes no sense; install the same rdmacoll everywhere");
  }
  RDMACOLL_RETURN_IF_ERROR(check(spec));
  return spec;
}

}  // namespace rdmacoll::ps
