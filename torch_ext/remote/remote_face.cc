// RemoteFace. Floor: torch_ext/remote. Thread: see remote_face.h.
#include "torch_ext/remote/remote_face.h"

#include <ATen/ops/from_blob.h>
#include <torch/csrc/utils/pybind.h>

#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>

#include "csrc/remote/row_ranges.h"
#include "torch_ext/base/interrupt.h"
#include "torch_ext/base/milliseconds.h"
#include "torch_ext/base/process_life.h"
#include "torch_ext/base/take_out.h"
#include "torch_ext/remote/remote_errors.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {
namespace {

// In a forked child the memory is its parent's, and stays as it is.
struct FreeInItsProcess {
  std::shared_ptr<void> memory;
  uint64_t forks = ProcessLife::instance().forks();

  void operator()(void*) {
    if (forks != ProcessLife::instance().forks()) new std::shared_ptr<void>(std::move(memory));
    memory.reset();
  }
};

// Those that there are, by endpoint.
struct Faces {
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<RemoteFace>> by_endpoint;
};

Faces& faces() {
  static Faces& of_process = *new Faces;  // threads may outlive what the process destroys
  return of_process;
}

std::span<const int64_t> indices(const at::Tensor& rows) {
  return {rows.const_data_ptr<int64_t>(), static_cast<size_t>(rows.numel())};
}

template <typename Call>
auto wait_or_raise(Call call) {
  return take_or_raise(without_gil(std::move(call)));
}

}  // namespace

at::Tensor bytes_at(std::byte* data, uint64_t bytes, std::shared_ptr<void> keeps) {
  return at::from_blob(data, {static_cast<int64_t>(bytes)}, FreeInItsProcess{std::move(keeps)},
                       at::TensorOptions().dtype(at::kByte));
}

// --- works and what is open ----------------------------------------------------------------------

TransferLimit::TransferLimit(std::string what, const OpenedPtr& opened, int64_t timeout_ms)
    : what(std::move(what) + " '" + opened->info.name + "'"),
      who(opened->who),
      timeout_ms(timeout_ms),
      deadline(Deadline::after_ms(SteadyClock(), timeout_ms)) {}

int64_t TransferLimit::left_ms() const {
  constexpr int64_t kAfterTheEngineMs = 100;
  return deadline.left_ms(SteadyClock()) + kAfterTheEngineMs;
}

Status TransferLimit::passed() const {
  return Status(StatusCode::Timeout,
                what + " of " + who + " has not ended within " + std::to_string(timeout_ms) +
                    " ms. It goes on, and uses its tensor until it has ended or " + who +
                    " is gone; the process there may be stopped");
}

RemoteWork::~RemoteWork() {
  if (!work_->done()) face_->keep(work_, std::move(used_));
}

void RemoteWork::wait(double timeout_s) {
  const int64_t own_ms = limit_ ? limit_->left_ms() : -1;
  const int64_t timeout_ms = timeout_s < 0 ? own_ms : milliseconds(timeout_s);
  raise_if_failed(without_gil([&](const InterruptCheck& interrupt) {
    const Status status = face_->remote().wait(*work_, timeout_ms, interrupt);
    const bool goes_on = status.code() == StatusCode::Timeout && !work_->done();
    return goes_on && timeout_s < 0 && limit_ ? limit_->passed() : status;
  }));
}

RemoteOpened::~RemoteOpened() {
  if (!face_->inherited()) face_->remote().close(opened_);
}

std::unique_ptr<RemoteWork> RemoteOpened::read(uint64_t offset, const at::Tensor& out,
                                               double timeout_s) const {
  Check("read").written(out, "out");
  face_->free_unused();
  const int64_t timeout_ms = milliseconds(timeout_s);
  WorkPtr work = face_->remote().read(opened_, offset, out.data_ptr(), out.nbytes(), timeout_ms);
  return std::make_unique<RemoteWork>(face_, std::move(work), UsedByWork{shared_from_this(), out},
                                      TransferLimit("the read of", opened_, timeout_ms));
}

std::unique_ptr<RemoteWork> RemoteOpened::read_rows(uint64_t offset, uint64_t row_bytes,
                                                    const at::Tensor& rows, const at::Tensor& out,
                                                    double timeout_s) const {
  Check("read_rows").written(out, "out");
  face_->free_unused();
  const int64_t timeout_ms = milliseconds(timeout_s);
  WorkPtr work =
      face_->remote().read(opened_, out.data_ptr(), out.nbytes(),
                           ranges_to_read({offset, row_bytes}, indices(rows)), timeout_ms);
  return std::make_unique<RemoteWork>(face_, std::move(work), UsedByWork{shared_from_this(), out},
                                      TransferLimit("the read of", opened_, timeout_ms));
}

std::unique_ptr<RemoteWork> RemoteOpened::write(uint64_t offset, const at::Tensor& data,
                                                uint64_t notify, double timeout_s) const {
  Check("write").dense(data, "data");
  face_->free_unused();
  const int64_t timeout_ms = milliseconds(timeout_s);
  WorkPtr work =
      face_->remote().write(opened_, offset, data.data_ptr(), data.nbytes(), notify, timeout_ms);
  return std::make_unique<RemoteWork>(face_, std::move(work), UsedByWork{shared_from_this(), data},
                                      TransferLimit("the write to", opened_, timeout_ms));
}

std::unique_ptr<RemoteWork> RemoteOpened::write_rows(uint64_t offset, uint64_t row_bytes,
                                                     const at::Tensor& rows,
                                                     const at::Tensor& values, uint64_t notify,
                                                     double timeout_s) const {
  Check("write_rows").dense(values, "values");
  face_->free_unused();
  const int64_t timeout_ms = milliseconds(timeout_s);
  WorkPtr work = face_->remote().write(opened_, values.data_ptr(), values.nbytes(),
                                       ranges_to_write({offset, row_bytes}, indices(rows)), notify,
                                       timeout_ms);
  return std::make_unique<RemoteWork>(face_, std::move(work),
                                      UsedByWork{shared_from_this(), values},
                                      TransferLimit("the write to", opened_, timeout_ms));
}

std::unique_ptr<RemoteWork> RemoteOpened::snapshot(const at::Tensor& out,
                                                   const std::vector<FromToBytes>& parts,
                                                   uint64_t newer_than, double timeout_s) const {
  Check("snapshot").written(out, "out");
  face_->free_unused();
  const int64_t timeout_ms = milliseconds(timeout_s);
  auto version = std::make_shared<uint64_t>(0);
  std::vector<MovedRange> of_version;
  of_version.reserve(parts.size());
  for (const auto& [from, to, bytes] : parts) of_version.push_back({from, to, bytes});
  WorkPtr work = face_->remote().snapshot(opened_, out.data_ptr(), out.nbytes(),
                                          std::move(of_version), newer_than, version, timeout_ms);
  return std::make_unique<RemoteWork>(face_, std::move(work), UsedByWork{shared_from_this(), out},
                                      TransferLimit("the read of", opened_, timeout_ms),
                                      std::move(version));
}

std::unique_ptr<RemoteWork> RemoteOpened::update(uint64_t offset, const Update& update,
                                                 double timeout_s) const {
  face_->free_unused();
  const int64_t timeout_ms = milliseconds(timeout_s);
  auto before = std::make_shared<uint64_t>(0);
  WorkPtr work = face_->remote().update(opened_, offset, update, before, timeout_ms);
  return std::make_unique<RemoteWork>(face_, std::move(work), UsedByWork{shared_from_this(), {}},
                                      TransferLimit("the update of", opened_, timeout_ms),
                                      std::move(before));
}

std::unique_ptr<RemoteWork> RemoteOpened::fence(double timeout_s) const {
  WorkPtr work = face_->remote().fence(opened_, milliseconds(timeout_s));
  return std::make_unique<RemoteWork>(face_, std::move(work), UsedByWork{shared_from_this(), {}});
}

at::Tensor RemotePublication::begin() {
  return bytes_at(publication_.begin(), publication_.bytes(), publication_.memory());
}

// --- the face ------------------------------------------------------------------------------------

Remote& RemoteFace::remote() const {
  if (inherited()) {
    throw std::runtime_error(
        "this process was forked from the one whose remote memory this is; use it there, or start "
        "processes with the method 'spawn'");
  }
  return *remote_;
}

bool RemoteFace::inherited() const { return forks_ != ProcessLife::instance().forks(); }

RemoteFace::RemoteFace(const RdmaBackend& backend) : forks_(ProcessLife::instance().forks()) {
  const Communicator& communicator = backend.communicator();
  const EngineContext& context = communicator.context();
  remote_ = std::make_unique<Remote>(RemoteContext{
      context.transports, context.sessions, context.progress, context.clock, communicator.keeps()});
}

RemoteFacePtr RemoteFace::make(const RdmaBackend& backend) {
  auto made = std::make_shared<RemoteFace>(backend);
  const std::lock_guard lock(faces().mutex);
  faces().by_endpoint[endpoint_of(backend)] = made;
  return made;
}

RemoteFacePtr RemoteFace::known(const RdmaBackend& backend) {
  const std::lock_guard lock(faces().mutex);
  const auto found = faces().by_endpoint.find(endpoint_of(backend));
  return found != faces().by_endpoint.end() ? found->second.lock() : nullptr;
}

void RemoteFace::keep(WorkPtr work, UsedByWork used) {
  kept_.emplace_back(std::move(work), std::move(used));
}

void RemoteFace::free_unused() {
  take_out(kept_, [](const auto& kept) { return kept.first->done(); });
}

uint64_t RemoteFace::endpoint_of(const RdmaBackend& backend) {
  return reinterpret_cast<uint64_t>(backend.communicator().keeps().get());
}

at::Tensor RemoteFace::allocate(uint64_t bytes, bool writable) {
  const RemoteMemoryPtr memory = take_or_raise(
      remote().allocate(std::max<uint64_t>(bytes, 1), writable ? Others::Write : Others::OnlyRead));
  return bytes_at(memory->data(), bytes, memory);
}

bool RemoteFace::holds(const at::Tensor& tensor) const {
  return remote().memory_of(tensor.data_ptr(), tensor.nbytes()) != nullptr;
}

void RemoteFace::expose(const std::string& name, const at::Tensor& tensor, bool writable,
                        const std::string& meta) {
  const RemoteMemoryPtr memory = remote().memory_of(tensor.data_ptr(), tensor.nbytes());
  if (memory == nullptr) throw pybind11::value_error("the tensor is not in remote memory");
  raise_if_failed(remote().expose(
      {.name = name, .bytes = tensor.nbytes(), .is_writable = writable, .meta = meta}, memory,
      memory->offset_of(tensor.data_ptr())));
}

std::unique_ptr<RemotePublication> RemoteFace::publish(const std::string& name, uint64_t bytes,
                                                       const std::string& meta) {
  const RemoteMemoryPtr memory =
      take_or_raise(remote().allocate(versions_bytes(bytes), Others::OnlyRead));
  raise_if_failed(remote().expose(
      {.name = name, .bytes = bytes, .has_versions = true, .meta = meta}, memory, 0));
  return std::make_unique<RemotePublication>(Publication(memory, 0, bytes));
}

uint64_t RemoteFace::notified(const std::string& name) const {
  return take_or_raise(remote().notified(name));
}

std::unique_ptr<RemoteWork> RemoteFace::wait_notified(const std::string& name, uint64_t at_least,
                                                      double timeout_s) {
  WorkPtr work = take_or_raise(remote().wait_notified(name, at_least, milliseconds(timeout_s)));
  return std::make_unique<RemoteWork>(shared_from_this(), std::move(work), UsedByWork{});
}

std::vector<std::string> RemoteFace::revoke(const std::string& name, double timeout_s) {
  return wait_or_raise([&](const InterruptCheck& interrupt) {
    return remote().revoke(name, milliseconds(timeout_s), interrupt);
  });
}

void RemoteFace::open_mailbox(const std::string& name) const {
  raise_if_failed(remote().open_mailbox(name));
}

void RemoteFace::close_mailbox(const std::string& name) const {
  raise_if_failed(remote().close_mailbox(name));
}

std::shared_ptr<RemoteOpened> RemoteFace::take(const std::string& name, double timeout_s) {
  OpenedPtr opened = wait_or_raise([&](const InterruptCheck& interrupt) {
    return remote().take(name, milliseconds(timeout_s), interrupt);
  });
  return std::make_shared<RemoteOpened>(shared_from_this(), std::move(opened));
}

std::shared_ptr<RemoteOpened> RemoteFace::allocate_there(const std::string& address,
                                                         const std::string& who, uint64_t bytes,
                                                         double timeout_s) {
  OpenedPtr opened = wait_or_raise([&](const InterruptCheck& interrupt) {
    return remote().allocate_there(address, who, bytes, milliseconds(timeout_s), interrupt);
  });
  return std::make_shared<RemoteOpened>(shared_from_this(), std::move(opened));
}

std::unique_ptr<RemoteWork> RemoteFace::post(const std::string& address, const std::string& who,
                                             const std::string& name, const at::Tensor& tensor,
                                             const std::string& meta, double timeout_s) {
  const RemoteMemoryPtr memory = remote().memory_of(tensor.data_ptr(), tensor.nbytes());
  if (memory == nullptr) throw pybind11::value_error("the tensor is not in remote memory");
  free_unused();
  const Parcel parcel{memory, memory->offset_of(tensor.data_ptr()), tensor.nbytes(), meta};
  WorkPtr work = wait_or_raise([&](const InterruptCheck& interrupt) {
    return remote().post(address, who, name, parcel, milliseconds(timeout_s), interrupt);
  });
  return std::make_unique<RemoteWork>(shared_from_this(), std::move(work),
                                      UsedByWork{.tensor = tensor});
}

std::map<std::string, uint64_t> RemoteFace::stats() const {
  const RemoteStats stats = remote().stats();
  return {{"memory_bytes", stats.memory_bytes}, {"exposures", stats.exposures},
          {"openings", stats.openings},         {"opened", stats.opened},
          {"lent_bytes", stats.lent_bytes},     {"posted", stats.posted},
          {"sessions", stats.sessions}};
}

std::shared_ptr<RemoteOpened> RemoteFace::open(const std::string& address, const std::string& who,
                                               const std::string& name, double timeout_s) {
  OpenedPtr opened = wait_or_raise([&](const InterruptCheck& interrupt) {
    return remote().open(address, who, name, milliseconds(timeout_s), interrupt);
  });
  return std::make_shared<RemoteOpened>(shared_from_this(), std::move(opened));
}

}  // namespace rdmacoll::torch_ext
