// RdmaBackend: the engine as a c10d::Backend. Every method checks its arguments, binds the tensors
// to buffers and starts one operation (or several, if coalesced) of the communicator.
//
// backend.cc: life, options, failure, the end of a blocking call · regroup.cc: groups made of
// another · reconfigure.cc: groups that are given their ranks · collectives.cc, lists.cc,
// coalesced.cc, p2p.cc: the operations · sparse.cc, monitored_barrier.cc: those made of others.
// Floor: torch_ext/backend. Thread: any.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "torch_ext/backend/parts.h"
#include "torch_ext/backend/profiled_call.h"
#include "torch_ext/backend/torch_work.h"
#include "torch_ext/base/compat.h"
#include "torch_ext/base/errors.h"
#include "torch_ext/join/membership.h"
#include "torch_ext/join/session.h"
#include "torch_ext/tensors/operand_trace.h"
#include "torch_ext/tensors/operands.h"

namespace rdmacoll::torch_ext {

class RdmaBackend final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;
  using WorkRef = c10::intrusive_ptr<c10d::Work>;
  using Milliseconds = std::chrono::milliseconds;

  struct Options final : c10d::Backend::Options {
    // algorithm: as Endpoint::create_communicator has it.
    explicit Options(Milliseconds timeout = kBackendDefaultTimeout, std::string algorithm = "")
        : c10d::Backend::Options("rdma", timeout), algorithm(std::move(algorithm)) {}
    const std::string algorithm;
#ifdef RDMACOLL_HAVE_RECONFIGURE
    c10::intrusive_ptr<c10d::Backend::Options> clone() const override {
      return c10::make_intrusive<Options>(*this);
    }
#endif
  };

  RdmaBackend(std::shared_ptr<Session> session, c10::intrusive_ptr<Options> options);
  // In no group until it is given its ranks; rank and size are what torch takes them for so long.
  RdmaBackend(std::unique_ptr<Membership> membership, int rank, int size,
              c10::intrusive_ptr<Options> options);
  ~RdmaBackend() override;
  // What the end of the last reference does, also while handles of operators name the group.
  void release_resources() override;

  // --- life: backend.cc -------------------------------------------------------------------------
  const std::string getBackendName() const override { return "rdma"; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override;
  void setTimeout(Milliseconds timeout) override;
  void setSequenceNumberForGroup() override {}  // every rank counts from 0
  uint64_t getSequenceNumberForGroup() override { return sequence_.load(); }
  c10d::ErrorType getError() override;
  void abort() override;
  void shutdown() override;
  bool supportsSplitting() const override { return true; }
  c10::intrusive_ptr<c10d::Backend> split(
      const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
      const c10::intrusive_ptr<c10d::Backend::Options>& options) override;
  bool supportsShrinking() const override { return true; }
  // Beside whom torch names, who is gone is excluded; torch names at least one, rdmacoll's own
  // shrink_group need not. With torch's SHRINK_ABORT what is in flight here is aborted first.
  c10::intrusive_ptr<c10d::Backend> shrink(
      const std::vector<int64_t>& ranks_to_exclude, int shrink_flags,
      const c10::intrusive_ptr<c10d::Backend::Options>& options) override;

  // --- ranks that are given to it: reconfigure.cc -----------------------------------------------
  // What others name this process by. Throws if the group was made with its ranks.
  const std::string& handle() const;
  // Leaves the group it is in, if any, and has joined that of these handles when it returns; limit
  // bounds that, by default the group's timeout. No other thread uses the group meanwhile. What it
  // throws it leaves in no group; it may be called again, with another number.
  WorkRef join_anew(int64_t uuid, const Membership::Handles& handles,
                    std::optional<Milliseconds> limit);
#ifdef RDMACOLL_HAVE_RECONFIGURE
  bool supportsReconfigure() const override { return membership_ != nullptr; }
  c10d::ReconfigureHandle get_reconfigure_handle() const override { return handle(); }
  WorkRef reconfigure(const c10d::ReconfigureOptions& opts) override {
    return join_anew(opts.uuid, opts.handles, opts.timeout);
  }
#endif

  // --- memory of the other ranks: torch_ext/remote/window.cc ------------------------------------
  bool supportsWindow() const RDMACOLL_OVERRIDE_OF_WINDOW { return true; }
  c10::intrusive_ptr<WindowBase> new_window(const std::optional<at::Tensor>& tensor)
      RDMACOLL_OVERRIDE_OF_WINDOW;

  // --- memory: heap_allocator.h -----------------------------------------------------------------
  bool supportsTensorAlloc(c10::DeviceIndex) override { return true; }
  at::Tensor allocateTensor(long size, at::TensorOptions options) override;
  std::shared_ptr<c10::Allocator> getMemAllocator() override;
  std::unordered_map<std::string, uint64_t> getMemoryStats() RDMACOLL_OVERRIDE_SINCE_2_13;

  // For what only the bindings ask it.
  const Communicator& communicator() const {
    throw_if_failed(session_->joined());
    return session_->communicator();
  }

  // What the operations stand on, for what is made of several backends.
  Session& session() const { return *session_; }

  // --- collectives.cc ---------------------------------------------------------------------------
  WorkRef broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override;
  WorkRef allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  WorkRef reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override;
  WorkRef _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& opts) override;
  WorkRef _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& opts) override;
  WorkRef alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits,
                        const c10d::AllToAllOptions& opts) override;
  WorkRef barrier(const c10d::BarrierOptions& opts) override;

  // --- lists.cc: one tensor per rank ------------------------------------------------------------
  WorkRef allgather(TensorLists& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& opts) override;
  WorkRef reduce_scatter(Tensors& outputs, TensorLists& inputs,
                         const c10d::ReduceScatterOptions& opts) override;
  WorkRef gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& opts) override;
  WorkRef scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& opts) override;
  WorkRef alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override;

  // --- coalesced.cc: several operations as one work ---------------------------------------------
  WorkRef allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& opts) override;
  WorkRef allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& opts) override;
  WorkRef allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& opts) override;
  WorkRef reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& opts) override;

  // --- p2p.cc -----------------------------------------------------------------------------------
  WorkRef send(Tensors& tensors, int destination, int tag) override;
  WorkRef recv(Tensors& tensors, int source, int tag) override;
  WorkRef recvAnysource(Tensors& tensors, int tag) override;

  // --- monitored_barrier.cc ---------------------------------------------------------------------
  void monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) override;

 private:
  // What torch says about an operation beside its tensors.
  struct Call {
    c10d::OpType type;
    const char* title;  // for the profiler
    bool async = true;
    Milliseconds timeout = c10d::kUnsetTimeout;
    bool collective = true;
  };

  // Starts `parts` operations, start(communicator, options, part) each. If not async it ends them,
  // and has nothing to return: no work is made, which torch would wrap for Python and wait for.
  template <typename Start>
  WorkRef launch(const Call& call, Operands&& operands, size_t parts, Start&& start);
  template <typename Start>
  WorkRef launch(const Call& call, Operands&& operands, Start&& start) {
    return launch(call, std::move(operands), 1,
                  [&start](Communicator& communicator, const CallOptions& options, size_t) {
                    return start(communicator, options);
                  });
  }

  // The end of a blocking call; throws if it failed or Ctrl-C was pressed.
  void finish_here(const Call& call, uint64_t sequence, Operands& operands, Parts& parts);
  // reconfigure.cc
  void renumber(int rank, int size);
  // sparse.cc
  WorkRef allreduce_sparse_coo(const at::Tensor& tensor, const c10d::AllreduceOptions& opts);
  // monitored_barrier.cc
  WorkRef send_token(int destination);
  WorkRef receive_token(int source);
  void collect_tokens(Milliseconds timeout, bool wait_all_ranks);

  Milliseconds timeout();  // of the group

  std::shared_ptr<Session> session_;  // another one with each join_anew()
  const c10::intrusive_ptr<Options> options_;
  const std::unique_ptr<Membership> membership_;  // nullptr: it was made with its ranks
  std::mutex options_mutex_;
  std::atomic<uint64_t> sequence_{0};
};

template <typename Start>
RdmaBackend::WorkRef RdmaBackend::launch(const Call& call, Operands&& operands, size_t parts,
                                         Start&& start) {
  throw_if_failed(session_->usable());
  Communicator& communicator = session_->communicator();
  const uint64_t sequence = call.collective ? sequence_.fetch_add(1) + 1 : sequence_.load();
  const CallOptions options{.timeout_ms = call.timeout.count() > 0 ? call.timeout.count() : -1,
                            .waits = !call.async};
  if (call.async) {
    auto work = c10::make_intrusive<TorchWork>(session_, call.type, call.title, sequence,
                                               std::move(operands));
    for (size_t part = 0; part < parts; ++part) work->add(start(communicator, options, part));
    work->finish_in_background();
    return work;
  }
  const ProfiledCall profiled(call.title, operands);
  const OperandTrace::Use use = OperandTrace::instance().use(operands);
  Parts blocking;
  for (size_t part = 0; part < parts; ++part) {
    blocking.add(start(communicator, options, part), communicator);
  }
  finish_here(call, sequence, operands, blocking);
  return nullptr;
}

}  // namespace rdmacoll::torch_ext
