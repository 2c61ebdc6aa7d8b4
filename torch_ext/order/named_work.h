// NamedWork: an operation that was submitted by name, as Python has it.
// Floor: torch_ext/order. Thread: any.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "csrc/engine/communicator.h"
#include "csrc/order/named_request.h"
#include "torch_ext/backend/backend.h"
#include "torch_ext/order/named_times.h"

namespace rdmacoll::torch_ext {

class NamedWork {
 public:
  using Tensors = std::vector<at::Tensor>;

  using BackendRef = c10::intrusive_ptr<RdmaBackend>;

  // inputs: what is sent; outputs: what is written, of an all_reduce and a broadcast read before.
  // tensors, names: the group's two backends.
  NamedWork(BackendRef tensors, BackendRef names, NamedRequest request, Tensors inputs,
            Tensors outputs);

  bool done() const { return ended_->done(); }
  // Drives the engine in this thread. Raises what it ended with, or that it did not in time; it is
  // in flight still, then. timeout_s < 0: no limit.
  void wait(double timeout_s);
  // Of one that has ended well.
  const Tensors& outputs() const { return outputs_; }
  // Of an all_to_all and an all_gather: how many rows came from each rank, tensor by tensor.
  const std::vector<int64_t>& rows() const { return rows_; }
  // Of a join: the rank that came last.
  uint32_t last_joined() const { return last_joined_; }
  const std::shared_ptr<NamedTimes>& times() const { return times_; }

  // --- the group's side -------------------------------------------------------------------------
  const NamedRequest& request() const { return request_; }
  const Tensors& inputs() const { return inputs_; }
  void set_outputs(Tensors outputs) { outputs_ = std::move(outputs); }
  void set_rows(std::vector<int64_t> rows) { rows_ = std::move(rows); }
  void set_last_joined(uint32_t rank) { last_joined_ = rank; }
  // Once, with no lock held: who waits in a callback goes on in this thread.
  void end(const Status& status);

 private:
  const BackendRef tensors_;
  const BackendRef names_;
  const NamedRequest request_;
  const Tensors inputs_;
  const std::shared_ptr<NamedTimes> times_ = std::make_shared<NamedTimes>();
  const WorkPtr ended_ = std::make_shared<Work>();  // done once this is
  Tensors outputs_;
  std::vector<int64_t> rows_;
  uint32_t last_joined_ = 0;
};

using NamedWorkPtr = std::shared_ptr<NamedWork>;

}  // namespace rdmacoll::torch_ext
