// TorchWork's life. Floor: torch_ext/backend.
#include "torch_ext/backend/torch_work.h"

#include <ATen/record_function.h>

#include <exception>
#include <string>
#include <utility>

#include "csrc/base/log.h"
#include "torch_ext/base/errors.h"
#include "torch_ext/base/interrupt.h"

namespace rdmacoll::torch_ext {
namespace {

std::optional<std::vector<at::Tensor>> shown_to_profiler(const Operands& operands) {
  if (!at::hasCallbacks()) return std::nullopt;
  return std::vector<at::Tensor>(operands.read().begin(), operands.read().end());
}

template <typename Step>
Status attempt(Step&& step) {
  try {
    step();
    return Status();
  } catch (const std::exception& error) {
    return Status(StatusCode::System,
                  std::string("an exception was thrown as an operation ended: ") + error.what());
  } catch (...) {
    return Status(StatusCode::System, "an unknown exception was thrown as an operation ended");
  }
}

}  // namespace

TorchWork::TorchWork(std::shared_ptr<Session> session, c10d::OpType type, const char* title,
                     uint64_t sequence, Operands operands, Parts parts)
    : Work(session->communicator().rank(), type, at::hasCallbacks() ? title : nullptr,
           shown_to_profiler(operands)),
      session_(std::move(session)),
      sequence_(sequence),
      operands_(std::move(operands)),
      use_(OperandTrace::instance().use(operands_)),
      pins_(operands_),
      parts_(std::move(parts)) {}

void TorchWork::finish_in_background() {
  if (parts_.done()) return settle();
  open_parts_.store(static_cast<int>(parts_.works().size()), std::memory_order_relaxed);
  const std::shared_ptr<InFlight>& in_flight = session_->in_flight();
  for (const WorkPtr& part : parts_.works()) {
    in_flight->begin();
    auto self = c10::intrusive_ptr<TorchWork>::unsafe_reclaim_from_nonowning(this);
    part->on_done([self = std::move(self), in_flight](const Status&) mutable {
      const InCallbacks in_callbacks(*in_flight);
      if (self->open_parts_.fetch_sub(1, std::memory_order_acq_rel) == 1) self->settle();
      self.reset();  // before the end is told: session.h
      in_flight->end();
    });
  }
}

void TorchWork::settle() noexcept {
  if (!settled()) {
    const std::lock_guard<std::mutex> lock(end_mutex_);
    if (!settled()) {
      status_ = end();
      settled_.store(true, std::memory_order_release);
    }
  }
  const Status called = attempt([this] { complete_future(); });
  // The future has its value by now. So a callback of it has thrown, and one of C++: torch catches
  // what those of Python throw.
  if (!called.ok()) {
    Log(LogLevel::Error, "rank " + std::to_string(rank_)).write(LogLevel::Error, called.message());
  }
}

Status TorchWork::end() {
  Status status = parts_.status();
  if (status.ok()) status = attempt([this] { operands_.unpack(); });
  use_.clear();
  pins_.release();
  if (recordFunctionEndCallback_) {
    const Status shown = attempt([this] { recordFunctionEndCallback_(); });
    if (status.ok()) status = shown;
  }
  return status;
}

void TorchWork::complete_future() {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!future_ || std::exchange(future_completed_, true)) return;
    future = future_;
  }
  if (status_.ok()) {
    future->markCompleted(at::IValue(tensors()));
  } else {
    future->setError(to_exception(status_));
  }
}

c10::intrusive_ptr<c10::ivalue::Future> TorchWork::getFuture() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!future_) {
      future_ =
          c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    }
  }
  if (settled()) complete_future();
  return future_;
}

bool TorchWork::isCompleted() {
  if (settled()) return true;
  if (!parts_.done()) return false;
  settle();
  return true;
}

bool TorchWork::isSuccess() const { return settled() && status_.ok(); }

std::exception_ptr TorchWork::exception() const {
  return settled() && !status_.ok() ? to_exception(status_) : nullptr;
}

int TorchWork::sourceRank() const {
  return parts_.works().empty() ? -1 : parts_.works().front()->source_rank();
}

std::vector<at::Tensor> TorchWork::result() {
  TORCH_CHECK(isCompleted(), "rdma: the operation is in flight; call wait() before result()");
  return tensors();
}

std::vector<at::Tensor> TorchWork::tensors() const {
  return {operands_.results().begin(), operands_.results().end()};
}

bool TorchWork::wait(std::chrono::milliseconds timeout) {
  if (!settled()) {
    parts_.wait(*session_, timeout == kNoTimeout ? -1 : timeout.count());
    settle();
  }
  throw_if_failed(status_, session_->communicator());
  return true;
}

void TorchWork::abort() {
  session_->communicator().abort("Work.abort() was called on rank " + std::to_string(rank_));
}

}  // namespace rdmacoll::torch_ext
