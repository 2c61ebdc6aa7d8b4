// RdmaBackend's life, options and failure, and how a blocking call ends. Floor: torch_ext/backend.
#include "torch_ext/backend/backend.h"

#include <utility>

#include "torch_ext/base/interrupt.h"
#include "torch_ext/heap/heap_allocator.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {
namespace {

// What operations in flight get to end by themselves when their group is let go.
constexpr int64_t kGraceMs = 2'000;

}  // namespace

RdmaBackend::RdmaBackend(std::shared_ptr<Session> session, c10::intrusive_ptr<Options> options)
    : Backend(session->communicator().rank(), session->communicator().size()),
      session_(std::move(session)),
      options_(std::move(options)) {}

RdmaBackend::~RdmaBackend() { RdmaBackend::release_resources(); }

void RdmaBackend::release_resources() {
  if (session_ == nullptr) return;
  shutdown();
  session_ = nullptr;
}

void RdmaBackend::finish_here(const Call& call, uint64_t sequence, Operands& operands,
                              Parts& parts) {
  try {
    parts.wait(*session_, -1);
  } catch (...) {
    // Ctrl-C ended the wait, not the operation, which goes on writing into the tensors.
    c10::make_intrusive<TorchWork>(session_, call.type, nullptr, sequence, std::move(operands),
                                   std::move(parts))
        ->finish_in_background();
    throw;
  }
  throw_if_failed(parts.status(), session_->communicator());
  operands.unpack();
}

void RdmaBackend::shutdown() {
  const WithoutGil without_gil;  // what ends may call back into Python
  session_->close("the group was let go on rank " + std::to_string(rank_), kGraceMs);
}

void RdmaBackend::abort() {
  throw_if_failed(session_->usable());
  session_->communicator().abort("abort() was called on rank " + std::to_string(rank_));
}

// A copy: torch fills in the options of a subgroup in what it gets here.
c10::intrusive_ptr<c10d::Backend::Options> RdmaBackend::getBackendOptions() {
  const std::lock_guard<std::mutex> lock(options_mutex_);
  return c10::make_intrusive<Options>(*options_);
}

RdmaBackend::Milliseconds RdmaBackend::timeout() {
  const std::lock_guard<std::mutex> lock(options_mutex_);
  return options_->timeout;
}

void RdmaBackend::setTimeout(Milliseconds timeout) {
  if (timeout <= Milliseconds::zero()) {
    Check("set_timeout")
        .fail("timeout=" + std::to_string(timeout.count()) + " ms; give a positive duration");
  }
  const std::lock_guard<std::mutex> lock(options_mutex_);
  options_->timeout = timeout;
  if (session_->joined().ok()) session_->communicator().set_timeout_ms(timeout.count());
}

c10d::ErrorType RdmaBackend::getError() {
  if (!session_->joined().ok()) return c10d::ErrorType::SUCCESS;
  const Status failure = session_->communicator().failure();
  switch (failure.code()) {
    case StatusCode::Ok:
      return c10d::ErrorType::SUCCESS;
    case StatusCode::Timeout:
      return c10d::ErrorType::TIMEOUT;
    case StatusCode::PeerFailed:
      return c10d::ErrorType::REMOTE_ERROR;
    default:
      return c10d::ErrorType::COMM_ERROR;
  }
}

at::Tensor RdmaBackend::allocateTensor(long size, at::TensorOptions options) {
  if (size < 0 || !options.device().is_cpu()) {
    Check("allocate_tensor")
        .fail("size=" + std::to_string(size) + ", device=" + options.device().str() +
              "; give a size of 0 or more elements on the CPU");
  }
  return empty_in_heap({size}, c10::typeMetaToScalarType(options.dtype()));
}

// Shared as torch wants it, but it lives for ever.
std::shared_ptr<c10::Allocator> RdmaBackend::getMemAllocator() {
  return {&HeapAllocator::instance(), [](c10::Allocator*) {}};
}

std::unordered_map<std::string, uint64_t> RdmaBackend::getMemoryStats() {
  const auto stats = heap_stats();
  return {stats.begin(), stats.end()};
}

}  // namespace rdmacoll::torch_ext
