// file_draft. Floor: torch_ext/ps. Thread: any, with the GIL.
#include "torch_ext/ps/file_draft.h"

#include <pybind11/stl.h>

#include <span>
#include <utility>

#include "torch_ext/base/interrupt.h"
#include "torch_ext/remote/remote_errors.h"

namespace rdmacoll::torch_ext {
namespace {

namespace py = pybind11;

files::Parts parts_of(const FileDraft::Parts& pairs) {
  files::Parts parts;
  for (const auto& [table, bytes] : pairs) parts.push_back({table, bytes});
  return parts;
}

FileDraft::Parts pairs_of(const files::Parts& parts) {
  FileDraft::Parts pairs;
  for (const files::Part& part : parts) pairs.emplace_back(part.table, part.bytes);
  return pairs;
}

std::span<std::byte> bytes_of(const py::buffer_info& info) {
  return {static_cast<std::byte*>(info.ptr), static_cast<size_t>(info.size * info.itemsize)};
}

}  // namespace

FileDraft::FileDraft(std::shared_ptr<FileDrafts> drafts, const Parts& parts, py::function new_table)
    : drafts_(std::move(drafts)),
      new_table_(std::move(new_table)),
      tables_(file_tables(drafts_->client, drafts_->timeout_s, &interrupt_)),
      blocks_(*tables_, drafts_->blocks) {
  const files::Draft::Host host{*tables_, blocks_, [this] { return this->new_table(); }};
  draft_ = std::make_unique<files::Draft>(host, parts_of(parts));
}

// What is being written is the parent's, in a forked child.
FileDraft::~FileDraft() {
  if (drafts_->client->inherited()) {
    static_cast<void>(draft_.release());
    return;
  }
  const WithoutGil without;
  draft_.reset();
}

Result<uint32_t> FileDraft::new_table() {
  const py::gil_scoped_acquire acquired;
  try {
    return new_table_().cast<uint32_t>();
  } catch (const std::exception& error) {
    raised_ = std::current_exception();
    return Status(StatusCode::PeerFailed, error.what());
  }
}

template <typename Act>
auto FileDraft::wait_for(Act act) {
  std::exception_ptr raised;
  auto result = without_gil([&](const InterruptCheck& interrupt) {
    const std::lock_guard lock(mutex_);
    interrupt_ = interrupt;
    auto done = act(*draft_);
    interrupt_ = {};
    raised = std::exchange(raised_, nullptr);
    return done;
  });
  if (raised != nullptr) std::rethrow_exception(raised);
  return result;
}

template <typename Act>
auto FileDraft::look(Act act) const {
  const WithoutGil without;
  const std::lock_guard lock(mutex_);
  return act(*draft_);
}

uint64_t FileDraft::read(uint64_t first, const py::buffer& out) {
  const py::buffer_info info = out.request(true);
  return take_or_raise(wait_for([&](auto& draft) { return draft.read(first, bytes_of(info)); }));
}

void FileDraft::write(uint64_t first, const py::buffer& data) {
  const py::buffer_info info = data.request();
  raise_if_failed(wait_for([&](auto& draft) { return draft.write(first, bytes_of(info)); }));
}

void FileDraft::resize(uint64_t bytes) {
  raise_if_failed(wait_for([&](auto& draft) { return draft.resize(bytes); }));
}

void FileDraft::store() {
  raise_if_failed(wait_for([](auto& draft) { return draft.store(); }));
}

uint64_t FileDraft::size() const {
  return look([](const auto& draft) { return draft.bytes(); });
}

bool FileDraft::is_changed() const {
  return look([](const auto& draft) { return draft.is_changed(); });
}

FileDraft::Parts FileDraft::parts() const {
  return look([](const auto& draft) { return pairs_of(draft.parts()); });
}

std::optional<FileDraft::Parts> FileDraft::added() const {
  const auto added = look([](const auto& draft) { return draft.added(); });
  return added ? std::optional(pairs_of(*added)) : std::nullopt;
}

std::vector<uint32_t> FileDraft::new_tables() const {
  return look([](const auto& draft) { return draft.new_tables(); });
}

void FileDraft::publish(const Parts& parts) {
  look([&](auto& draft) { return draft.publish(parts_of(parts)); });
}

std::vector<uint32_t> FileDraft::take_unused() {
  return look([](auto& draft) { return draft.take_unused(); });
}

void bind_file_draft(py::module_& module) {
  py::class_<FileDrafts, std::shared_ptr<FileDrafts>>(module, "FileDrafts")
      .def(py::init<PsClientPtr, double>());
  py::class_<FileDraft>(module, "FileDraft")
      .def(py::init<std::shared_ptr<FileDrafts>, const FileDraft::Parts&, py::function>())
      .def("size", &FileDraft::size)
      .def("read", &FileDraft::read)
      .def("write", &FileDraft::write)
      .def("resize", &FileDraft::resize)
      .def("is_changed", &FileDraft::is_changed)
      .def("store", &FileDraft::store)
      .def("parts", &FileDraft::parts)
      .def("added", &FileDraft::added)
      .def("new_tables", &FileDraft::new_tables)
      .def("publish", &FileDraft::publish)
      .def("take_unused", &FileDraft::take_unused);
}

}  // namespace rdmacoll::torch_ext
