// Names. Floor: fuse_ext. Thread: any.
#include "fuse_ext/names.h"

#include <pybind11/stl.h>

#include "fuse_ext/problem.h"

namespace py = pybind11;

// As rdmacoll/mount/names.py has it.
template <>
struct pybind11::detail::type_caster<rdmacoll::fuse::Entry> {
  PYBIND11_TYPE_CASTER(rdmacoll::fuse::Entry, const_name("Entry"));
  using Parts = std::vector<std::pair<uint32_t, uint64_t>>;
  using Fixed = std::pair<std::string, std::vector<std::pair<std::string, std::string>>>;
  using Tuple = std::tuple<bool, uint64_t, int64_t, uint32_t, Parts, std::optional<Fixed>>;

  bool load(handle source, bool) {
    const auto [is_folder, folder, modified_ns, mode, parts, fixed] = source.cast<Tuple>();
    value = {is_folder, folder, modified_ns, mode};
    for (const auto& [table, bytes] : parts) value.parts.push_back({table, bytes});
    if (fixed) value.fixed = {fixed->first, fixed->second};
    return true;
  }
  // Nobody is told of what is fixed: it is known by its place.
  static handle cast(const rdmacoll::fuse::Entry& entry, return_value_policy, handle) {
    Parts parts;
    for (const auto& part : entry.parts) parts.emplace_back(part.table, part.bytes);
    return py::make_tuple(entry.is_folder, entry.folder, entry.modified_ns, entry.mode, parts,
                          py::none())
        .release();
  }
};

template <>
struct pybind11::detail::type_caster<rdmacoll::fuse::Place> {
  PYBIND11_TYPE_CASTER(rdmacoll::fuse::Place, const_name("Place"));
  bool load(handle, bool) { return false; }
  static handle cast(const rdmacoll::fuse::Place& place, return_value_policy, handle) {
    return py::make_tuple(place.folder, py::bytes(place.name)).release();
  }
};

namespace rdmacoll::fuse {
namespace {

Problem problem_of(const py::error_already_set& error) {
  Problem problem{EIO, error.what()};
  if (error.matches(PyExc_OSError)) {
    const py::object number = error.value().attr("errno");
    if (!number.is_none()) problem.number = number.cast<int>();
  }
  return problem;
}

}  // namespace

Names::~Names() {
  const py::gil_scoped_acquire acquired;
  names_ = {};
}

template <typename Result, typename... Arguments>
Result Names::call(const char* name, const Arguments&... arguments) {
  const py::gil_scoped_acquire acquired;
  try {
    py::object result = names_.attr(name)(arguments...);
    if constexpr (!std::is_void_v<Result>) return result.cast<Result>();
  } catch (const py::error_already_set& error) {
    throw problem_of(error);
  }
}

std::optional<Entry> Names::find(const Place& place) {
  return call<std::optional<Entry>>("find", place);
}
std::vector<std::pair<std::string, Entry>> Names::list(uint64_t folder) {
  return call<std::vector<std::pair<std::string, Entry>>>("names_in", folder);
}
Hold Names::hold(const Place& place, const Entry& entry) {
  return call<Hold>("hold", place, entry);
}
void Names::release(Hold hold) { call<void>("release", hold); }
Names::Tables Names::new_tables() { return call<Tables>("new_tables"); }
void Names::free(const Tables& tables) { call<void>("free", tables); }
Entry Names::create(const Place& place, uint32_t mode, bool only_new) {
  return call<Entry>("create", place, mode, only_new);
}
void Names::put(const Place& place, const Entry& entry, const Tables& new_tables, Hold hold) {
  call<void>("put", place, entry, new_tables, hold);
}
Entry Names::append(const Place& place, const Entry& added, const Tables& new_tables, Hold hold) {
  return call<Entry>("append", place, added, new_tables, hold);
}
void Names::change(const Place& place, const Entry& known, const Entry& wanted) {
  call<void>("change", place, known, wanted);
}
int64_t Names::changed_ns(uint64_t folder) { return call<int64_t>("changed_ns", folder); }
void Names::set_changed_ns(uint64_t folder, int64_t changed_ns) {
  call<void>("set_changed_ns", folder, changed_ns);
}
Entry Names::make_folder(const Place& place, uint32_t mode) {
  return call<Entry>("make_folder", place, mode);
}
void Names::remove_file(const Place& place) { call<void>("remove_file", place); }
void Names::remove_folder(const Place& place) { call<void>("remove_folder", place); }
void Names::move(const Place& from, const Place& to, bool only_new) {
  call<void>("move", from, to, only_new);
}
bool Names::wait_for_room() { return call<bool>("wait_for_room"); }
Names::Space Names::space() {
  const auto [bytes, free_bytes] = call<std::pair<uint64_t, uint64_t>>("space");
  return {bytes, free_bytes};
}

}  // namespace rdmacoll::fuse
