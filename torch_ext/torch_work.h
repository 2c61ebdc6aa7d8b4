// TorchWork: c10d::Work over one or several works of the engine, its parts. It keeps the tensors
// alive, unpacks them at the end, and makes a future only for who asks.
//
// An operation is settled once all its parts are done: then the results are unpacked and the status
// is final. Whoever comes first settles it: a waiter, or the callback of its last part.
// Floor: torch_ext. Thread: any; futures complete in the thread that settles, which holds no lock.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "csrc/engine/work.h"
#include "torch_ext/operand_trace.h"
#include "torch_ext/operands.h"
#include "torch_ext/session.h"

namespace rdmacoll::torch_ext {

class TorchWork final : public c10d::Work {
 public:
  // `title` is a literal, what a profiler calls the operation.
  TorchWork(std::shared_ptr<Session> session, c10d::OpType type, const char* title,
            uint64_t sequence, Operands operands);

  // --- the backend's side: parts first, then one of the other two -------------------------------
  // A part that could not start fails the whole, after the parts before it have ended.
  void add(Result<WorkPtr> part);
  // Drives it to its end in this thread; throws if it failed or Ctrl-C was pressed.
  void finish_here();
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
  bool parts_done() const;
  // Waits for all parts; -1: without a limit of its own. Throws on a timeout or Ctrl-C.
  void drive(int64_t timeout_ms);
  void settle();
  void throw_if_it_failed() const;  // once settled
  void end();                       // once; under end_mutex_, where others know of this
  void complete_future();

  const std::shared_ptr<Session> session_;
  const uint64_t sequence_;
  Operands operands_;
  OperandTrace::Use use_;  // until settled
  c10::SmallVector<WorkPtr, 1> parts_;
  Status start_failure_;

  std::atomic<int> open_parts_{0};
  std::mutex end_mutex_;  // a once_flag would cost a system call
  std::atomic<bool> settled_{false};
  Status status_;  // once settled

  c10::intrusive_ptr<c10::ivalue::Future> future_;  // both under mutex_
  bool future_completed_ = false;
};

}  // namespace rdmacoll::torch_ext
