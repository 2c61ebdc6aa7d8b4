// RdmaWindow. Floor: torch_ext/remote. Thread: see window.h.
//
// Each rank exposes its memory once for every rank, under names of their own: so each has a line to
// notify this one in, which counts its signals.
#include "torch_ext/remote/window.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <random>
#include <utility>

#include "torch_ext/backend/torch_work.h"
#include "torch_ext/base/errors.h"
#include "torch_ext/base/interrupt.h"
#include "torch_ext/remote/signal_wait.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {
namespace {

std::string name_of(uint64_t id, int64_t rank) {
  return "window " + std::to_string(id) + "/" + std::to_string(rank);
}

uint64_t draw_id() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) >> 1;  // an int64 to torch
}

}  // namespace

c10::intrusive_ptr<WindowBase> RdmaBackend::new_window(const std::optional<at::Tensor>& tensor) {
  throw_if_failed(session_->usable());
  auto window = c10::make_intrusive<RdmaWindow>(
      c10::intrusive_ptr<RdmaBackend>::unsafe_reclaim_from_nonowning(this), session_);
  if (tensor) window->tensor_register(*tensor, true);
  return window;
}

RdmaWindow::RdmaWindow(BackendRef backend, std::shared_ptr<Session> session)
    : backend_(std::move(backend)), session_(std::move(session)) {}

RdmaWindow::~RdmaWindow() {
  if (face_ != nullptr && !face_->inherited()) give_up();
}

// --- registering ---------------------------------------------------------------------------------

void RdmaWindow::tensor_register(const at::Tensor& tensor, bool /*owning*/) {
  const Check check("tensor_register");
  throw_if_failed(session_->usable());
  if (tensor_.defined()) {
    check.fail("double registration; the window has a tensor, deregister it first");
  }
  check.dense(tensor, "tensor");
  const RemoteFacePtr face = RemoteFace::known(*backend_);
  const RemoteMemoryPtr memory =
      face != nullptr ? face->remote().memory_of(tensor.data_ptr(), tensor.nbytes()) : nullptr;
  std::string refused;
  if (!tensor.is_contiguous()) {
    refused = "the tensor is not contiguous; call contiguous() first";
  } else if (memory == nullptr || memory->others() != Others::Write) {
    refused =
        "the tensor is not in memory that other ranks may write; make it with "
        "rdmacoll.remote.empty(..., access=\"rw\"), which is to this backend what a MemPool is to "
        "others";
  }
  const uint64_t id = draw_id();
  if (refused.empty()) {
    face_ = face;
    const Status exposed = expose_to_all(tensor, *memory, id);
    if (!exposed.ok()) refused = exposed.message();
  }
  try {
    agree(tensor, refused, id);
  } catch (...) {
    give_up();
    throw;
  }
  const std::lock_guard lock(mutex_);
  tensor_ = tensor;
}

Status RdmaWindow::expose_to_all(const at::Tensor& tensor, RemoteMemory& memory, uint64_t id) {
  for (int64_t rank = 0; rank < backend_->getSize(); ++rank) {
    const std::string name = name_of(id, rank);
    RDMACOLL_RETURN_IF_ERROR(
        face_->remote().expose({.name = name, .bytes = tensor.nbytes(), .is_writable = true},
                               memory.shared_from_this(), memory.offset_of(tensor.data_ptr())));
    const std::lock_guard lock(mutex_);
    peers_.push_back({.exposed = name, .name = ""});
  }
  return Status();
}

// Also where this rank's tensor is refused: the others hear of that instead of waiting for it.
void RdmaWindow::agree(const at::Tensor& tensor, const std::string& refused, uint64_t id) {
  const Check check("tensor_register");
  enum : int64_t { kId, kType, kElements, kIsRefused, kFields };
  at::Tensor own = at::zeros({kFields}, at::kLong);
  auto* fields = own.mutable_data_ptr<int64_t>();
  fields[kId] = static_cast<int64_t>(id);
  fields[kType] = static_cast<int64_t>(tensor.scalar_type());
  fields[kElements] = tensor.numel();
  fields[kIsRefused] = refused.empty() ? 0 : 1;
  at::Tensor all = at::empty({backend_->getSize(), kFields}, at::kLong);
  c10d::AllgatherOptions opts;
  opts.asyncOp = false;
  backend_->_allgather_base(all, own, opts);
  if (!refused.empty()) check.fail(refused);
  for (int64_t rank = 0; rank < backend_->getSize(); ++rank) {
    const int64_t* theirs = all.const_data_ptr<int64_t>() + rank * kFields;
    const std::string who = "rank " + std::to_string(rank);
    if (theirs[kIsRefused] != 0) check.fail("the tensor of " + who + " was refused there");
    if (theirs[kType] != fields[kType] || theirs[kElements] != fields[kElements]) {
      check.fail("the tensor of " + who + " has " + std::to_string(theirs[kElements]) +
                 " elements, or another dtype, and that of this rank has " +
                 std::to_string(tensor.numel()) + "; all ranks register the same");
    }
    const std::lock_guard lock(mutex_);
    peers_[static_cast<size_t>(rank)].name =
        name_of(static_cast<uint64_t>(theirs[kId]), backend_->getRank());
  }
}

// It ends in any case, also if a rank that is gone is waited for in vain.
void RdmaWindow::tensor_deregister() {
  const int64_t limit_ms = timeout_ms(c10d::kUnsetTimeout);
  peer("tensor_deregister", backend_->getRank());  // or it throws
  try {
    for (const Peer& of_rank : peers_) {
      for (const WorkPtr& put : of_rank.puts) throw_if_failed(wait(*put, limit_ms));
      if (of_rank.opened == nullptr) continue;
      throw_if_failed(wait(*face_->remote().fence(of_rank.opened, limit_ms), -1));
    }
    c10d::BarrierOptions opts;
    opts.asyncOp = false;
    backend_->barrier(opts);
  } catch (...) {
    give_up();
    throw;
  }
  throw_if_failed(
      without_gil([&](const InterruptCheck& interrupt) { return take_back(limit_ms, interrupt); }));
}

void RdmaWindow::give_up() {
  static_cast<void>(take_back(0, [] { return Status(); }));
}

// All of it, whatever becomes of a part. Where a put is still under way the other's memory stays
// open, so that it is not given back too early.
Status RdmaWindow::take_back(int64_t timeout_ms, const InterruptCheck& interrupt) {
  std::vector<Peer> peers;
  at::Tensor tensor;  // freed when the lock is not held: Python may want to see it
  {
    const std::lock_guard lock(mutex_);
    peers.swap(peers_);
    std::swap(tensor, tensor_);
  }
  for (const Peer& of_rank : peers) {
    const bool is_idle = std::all_of(of_rank.puts.begin(), of_rank.puts.end(),
                                     [](const WorkPtr& put) { return put->done(); });
    if (of_rank.opened != nullptr && is_idle) face_->remote().close(of_rank.opened);
  }
  Status failure;
  const WithoutGil without_gil;
  for (const Peer& of_rank : peers) {
    const Status revoked = face_->remote().revoke(of_rank.exposed, timeout_ms, interrupt).status();
    if (failure.ok()) failure = revoked;
  }
  return failure;
}

// --- what is done there --------------------------------------------------------------------------

int64_t RdmaWindow::timeout_ms(Milliseconds asked) const {
  return (asked.count() > 0 ? asked : backend_->getBackendOptions()->timeout).count();
}

Status RdmaWindow::wait(Work& work, int64_t timeout_ms) const {
  return without_gil([&](const InterruptCheck& interrupt) {
    return face_->remote().wait(work, timeout_ms, interrupt);
  });
}

RdmaWindow::Peer& RdmaWindow::peer(const char* operation, int64_t rank) {
  const Check check(operation);
  throw_if_failed(session_->usable());
  if (!tensor_.defined()) check.fail("no tensor is registered (not registered); register one");
  check.peer(static_cast<int>(std::clamp<int64_t>(rank, -1, backend_->getSize())),
             backend_->getSize(), "rank");
  return peers_[static_cast<size_t>(rank)];
}

OpenedPtr RdmaWindow::open(const char* operation, int64_t rank) {
  Peer& there = peer(operation, rank);
  {
    const std::lock_guard lock(mutex_);
    if (there.opened != nullptr) return there.opened;
  }
  const std::string who = "rank " + std::to_string(rank);
  const auto address = session_->communicator().address_of(static_cast<int>(rank));
  if (!address) Check(operation).fail(who + " is not known to this rank any more");
  auto opened = without_gil([&](const InterruptCheck& interrupt) {
    return face_->remote().open(*address, who, there.name, timeout_ms(c10d::kUnsetTimeout),
                                interrupt);
  });
  throw_if_failed(opened.status());
  const std::lock_guard lock(mutex_);
  if (there.opened == nullptr) {
    there.opened = opened.value();
  } else {
    face_->remote().close(opened.value());  // another thread was faster
  }
  return there.opened;
}

RdmaWindow::WorkRef RdmaWindow::start(const char* title, Operands operands, WorkPtr part,
                                      bool async) const {
  auto work = c10::make_intrusive<TorchWork>(session_, c10d::OpType::UNKNOWN, title, 0,
                                             std::move(operands));
  work->add(std::move(part));
  work->finish_in_background();
  if (!async) work->wait();
  return work;
}

RdmaWindow::WorkRef RdmaWindow::put(const at::Tensor& tensor, int64_t rank, int64_t offset_nelems,
                                    bool async, const PutOptions& opts) {
  const Check check("put");
  Peer& there = peer("put", rank);
  check.dense(tensor, "tensor");
  if (tensor.scalar_type() != tensor_.scalar_type()) {
    check.fail(std::string("tensor has dtype ") + c10::toString(tensor.scalar_type()) +
               ", and the window " + c10::toString(tensor_.scalar_type()));
  }
  const int64_t room = tensor_.numel() - offset_nelems;
  if (offset_nelems < 0 || tensor.numel() > room) {
    check.fail(std::to_string(tensor.numel()) + " elements from element " +
               std::to_string(offset_nelems) + " on exceeds the window size of " +
               std::to_string(tensor_.numel()));
  }
  const OpenedPtr opened = open("put", rank);
  Operands operands;
  const ConstBuffer data = operands.input(tensor);
  const uint64_t offset = static_cast<uint64_t>(offset_nelems) * tensor.element_size();
  WorkPtr written =
      face_->remote().write(opened, offset, data.data, data.bytes, 0, timeout_ms(opts.timeout));
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(there.puts, [](const WorkPtr& put) { return put->done(); });
    there.puts.push_back(written);
  }
  return start("rdma:put", std::move(operands), std::move(written), async);
}

RdmaWindow::WorkRef RdmaWindow::signal(int64_t rank, bool async, const SignalOptions& opts) {
  Peer& there = peer("signal", rank);
  const OpenedPtr opened = open("signal", rank);
  const int64_t limit_ms = timeout_ms(opts.timeout);
  std::vector<WorkPtr> before;
  {
    const std::lock_guard lock(mutex_);
    before = there.puts;
  }
  for (const WorkPtr& put : before) throw_if_failed(wait(*put, limit_ms));
  WorkPtr told;
  {
    const std::lock_guard lock(mutex_);
    told = face_->remote().write(opened, 0, nullptr, 0, ++there.signals, limit_ms);
  }
  return start("rdma:signal", {}, std::move(told), async);
}

RdmaWindow::WorkRef RdmaWindow::wait_signal(int64_t rank, bool async,
                                            const WaitSignalOptions& opts) {
  Peer& there = peer("wait_signal", rank);
  const OpenedPtr sender = open("wait_signal", rank);
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = ++there.awaited;
  }
  auto work = c10::make_intrusive<SignalWait>(face_, sender, there.exposed, number,
                                              timeout_ms(opts.timeout));
  if (async) return work;
  try {
    work->wait(kNoTimeout);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    --there.awaited;  // the next wait is for the same signal
    throw;
  }
  return work;
}

at::Tensor RdmaWindow::map_remote_tensor(int64_t rank) {
  peer("map_remote_tensor", rank);
  if (rank == backend_->getRank()) return tensor_;
  struct Keeps {
    RemoteFacePtr face;
    OpenMemoryPtr memory;  // closed before
  };
  const OpenedPtr opened = open("map_remote_tensor", rank);
  const auto use = opened->use();
  if (use == nullptr) throw_status(opened->why_not());
  if (use->memory->region.base == nullptr) {
    throw_status(Status(StatusCode::Unsupported,
                        "map_remote_tensor: rank " + std::to_string(rank) +
                            " is on another host, whose memory cannot be mapped; read it with "
                            "rdmacoll.remote"));
  }
  const at::Tensor bytes = bytes_at(use->memory->region.base + opened->as.offset, tensor_.nbytes(),
                                    std::make_shared<Keeps>(face_, use->memory));
  return bytes.view(tensor_.scalar_type()).view(tensor_.sizes());
}

WindowAttr RdmaWindow::get_attr(int64_t rank) {
  const OpenedPtr opened = open("get_attr", rank);
  const auto use = opened->use();
  if (use == nullptr) throw_status(opened->why_not());
  return {use->memory->region.base != nullptr ? WindowAccessType::UNIFIED
                                              : WindowAccessType::SEPARATE};
}

// --- bindings ------------------------------------------------------------------------------------

#ifdef RDMACOLL_HAVE_WINDOW
void bind_window(py::module_&) {}  // torch has
#else
// Under torch's names.
void bind_window(py::module_& module) {
  using Release = py::call_guard<WithoutGil>;
  py::enum_<WindowAccessType>(module, "WindowAccessType")
      .value("UNIFIED", WindowAccessType::UNIFIED)
      .value("SEPARATE", WindowAccessType::SEPARATE);
  py::class_<WindowAttr>(module, "WindowAttr")
      .def_readonly("access_type", &WindowAttr::access_type);
  py::class_<WindowOptions>(module, "WindowOptions")
      .def(py::init<>())
      .def_readwrite("timeout", &WindowOptions::timeout);
  const auto opts = py::arg_v("opts", WindowOptions(), "WindowOptions()");
  py::class_<RdmaWindow, c10::intrusive_ptr<RdmaWindow> >(module, "Window")
      .def("tensor_register", &RdmaWindow::tensor_register, py::arg("tensor"),
           py::arg("owning") = true, Release())
      .def("tensor_deregister", &RdmaWindow::tensor_deregister, Release())
      .def("put", &RdmaWindow::put, py::arg("tensor"), py::arg("dst_rank"),
           py::arg("target_offset_nelems"), py::arg("async_op"), opts, Release())
      .def("signal", &RdmaWindow::signal, py::arg("peer_rank"), py::arg("async_op"), opts,
           Release())
      .def("wait_signal", &RdmaWindow::wait_signal, py::arg("peer_rank"), py::arg("async_op"), opts,
           Release())
      .def("map_remote_tensor", &RdmaWindow::map_remote_tensor, py::arg("rank"), Release())
      .def("get_attr", &RdmaWindow::get_attr, py::arg("peer_rank"), Release());
  module.def(
      "new_window",
      [](RdmaBackend& backend, const std::optional<at::Tensor>& tensor) {
        return c10::static_intrusive_pointer_cast<RdmaWindow>(backend.new_window(tensor));
      },
      py::arg("backend"), py::arg("tensor") = py::none(), Release());
}
#endif

}  // namespace rdmacoll::torch_ext
