// TorchWork: c10d::Work over the parts of an operation that is not blocking. It keeps the tensors
// alive, unpacks them at the end, and makes a future only for who asks.
//
// An operation is settled once all its parts are done: then the results are unpacked and the status
// is final. Whoever comes first settles it: a waiter, or the callback of its last part. The thread
// may have other operations to serve, so what is thrown meanwhile becomes this one's failure.
// Floor: torch_ext/backend. Thread: any; futures complete in the thread that settles, which holds
// no lock.
#pragma once

#include <ATen/core/ivalue.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "torch_ext/backend/parts.h"
#include "torch_ext/join/session.h"
#include "torch_ext/tensors/operand_trace.h"
#include "torch_ext/tensors/operands.h"
#include "torch_ext/tensors/pins.h"

namespace rdmacoll::torch_ext {

class TorchWork final : public c10d::Work {
 public:
  // `title` is a literal, what a profiler calls the operation.
  TorchWork(std::shared_ptr<Session> session, c10d::OpType type, const char* title,
            uint64_t sequence, Operands operands, Parts parts = {});

  // --- the backend's side: parts first, then the other ------------------------------------------
  void add(Result<WorkPtr> part) { parts_.add(std::move(part), session_->communicator()); }
  // Leaves it to whoever drives the engine.
  void finish_in_background();

  // --- c10d::Work -------------------------------------------------------------------------------
  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override {}  // CPU tensors have no streams
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return sequence_; }

 private:
  bool settled() const { return settled_.load(std::memory_order_acquire); }
  void settle() noexcept;
  Status end();  // once; under end_mutex_
  void complete_future();
  std::vector<at::Tensor> tensors() const;  // the results

  const std::shared_ptr<Session> session_;
  const uint64_t sequence_;
  Operands operands_;
  OperandTrace::Use use_;  // this and the pins until settled
  Pins pins_;
  Parts parts_;

  std::atomic<int> open_parts_{0};
  std::mutex end_mutex_;  // a once_flag would cost a system call
  std::atomic<bool> settled_{false};
  Status status_;  // once settled

  c10::intrusive_ptr<c10::ivalue::Future> future_;  // both under mutex_
  bool future_completed_ = false;
};

}  // namespace rdmacoll::torch_ext
