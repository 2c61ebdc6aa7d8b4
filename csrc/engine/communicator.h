// Communicator: a group of ranks and everything they can do together. The face of the engine.
// Floor: engine. Thread: any thread may start operations and wait; collectives of one communicator
// must be started in the same order on all its ranks.
//
// Memory named in an operation must stay valid and (outputs) untouched until the work is done; the
// spans of buffers themselves are copied. Errors found at the call come back as InvalidArgument or
// Unsupported and nothing has moved; later errors come through the work.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/connect/linker.h"
#include "csrc/engine/connect/transports.h"
#include "csrc/engine/drive/progress.h"
#include "csrc/engine/group/group.h"
#include "csrc/engine/session/sessions.h"
#include "csrc/engine/shrinking.h"
#include "csrc/engine/work/work.h"
#include "csrc/engine/work/work_pool.h"
#include "csrc/plan/choice/choices.h"
#include "csrc/plan/islands.h"
#include "csrc/plan/plan.h"
#include "csrc/reduce/types.h"

namespace rdmacoll {

struct ConstBuffer {
  const void* data = nullptr;
  uint64_t bytes = 0;
};

struct MutableBuffer {
  void* data = nullptr;
  uint64_t bytes = 0;
};

// Over what a rank is reached, and why so in a few words.
struct PeerPath {
  int rank = 0;
  std::string transport;
  std::string reason;
};

// What a caller says about one operation beside its buffers.
struct CallOptions {
  // After this time the operation fails, and its group with it; a receive that nothing has matched
  // fails alone. < 0: the communicator's own.
  int64_t timeout_ms = -1;
  // What else the ranks must agree about, or they are told of a mismatch.
  uint64_t also_equal = 0;
  // Of all_to_all, gather and scatter: all blocks of all ranks have the same size. Then ranks may
  // pass on each other's blocks. Either all ranks say so or none, or they are told of a mismatch.
  bool equal_blocks = false;
  // The caller waits for the work as soon as it is started, so nobody else is woken to drive it.
  bool waits = false;
};

// What a communicator stands on; all of it outlives the communicator.
struct EngineContext {
  Transports& transports;
  Linker& linker;
  Sessions& sessions;
  Progress& progress;
  const Clock& clock;
  const Tuning& tuning;
  Preference preference;  // the group's own, or the config's
};

class Communicator {
 public:
  // `keeps` is held as long as the communicator lives: the owner of the context.
  // token: by which the linker knows the group. islands: equal on all ranks. shrinking: of this
  // group; nullptr: it is never shrunk.
  Communicator(std::unique_ptr<Group> group, uint32_t token, Islands islands, EngineContext context,
               int64_t timeout_ms, std::shared_ptr<void> keeps,
               std::unique_ptr<Shrinking> shrinking);
  // Leaves the group; what is in flight fails with Aborted, here and on the peers.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;
  int size() const;
  // To the ranks that this one has met.
  std::vector<PeerPath> paths() const;
  const Islands& islands() const { return islands_; }
  // How the process of a rank is reached; nullopt: this rank does not know it.
  std::optional<std::string> address_of(int rank) const;
  // What an operation of so many bytes takes (plan/choice/choices.h).
  Algorithm algorithm_for(Collective collective, uint64_t bytes) const {
    return choices_.choose(collective, bytes);
  }
  // What it stands on, and what holds that.
  const EngineContext& context() const { return context_; }
  const std::shared_ptr<void>& keeps() const { return keeps_; }
  // Of the whole process, over all its transports.
  TransportCounters counters() const;
  // Of the process, too: memory on which operations copy nothing. nullptr: there is none.
  Heap* heap() const { return context_.transports.heap(); }

  // Applied to operations started from now on.
  void set_timeout_ms(int64_t timeout_ms);
  int64_t timeout_ms() const;

  // input may equal output in the first three. count in elements, bytes in bytes.
  Result<WorkPtr> all_reduce(const void* input, void* output, uint64_t count, DType, ReduceOp,
                             const CallOptions& options = {});
  // output is used on the root only.
  Result<WorkPtr> reduce(const void* input, void* output, uint64_t count, DType, ReduceOp, int root,
                         const CallOptions& options = {});
  Result<WorkPtr> broadcast(void* data, uint64_t bytes, int root, const CallOptions& options = {});
  // outputs: one per rank, outputs[r].bytes what rank r contributes; outputs[rank()] may be input.
  Result<WorkPtr> all_gather(ConstBuffer input, std::span<const MutableBuffer> outputs,
                             const CallOptions& options = {});
  // inputs: one per rank, inputs[r].bytes what rank r receives; all ranks name the same sizes.
  Result<WorkPtr> reduce_scatter(std::span<const ConstBuffer> inputs, MutableBuffer output, DType,
                                 ReduceOp, const CallOptions& options = {});
  // inputs[r] goes to rank r, outputs[r] comes from it; any sizes that the two ends agree on. Of
  // this and the next two CallOptions::equal_blocks may say more.
  Result<WorkPtr> all_to_all(std::span<const ConstBuffer> inputs,
                             std::span<const MutableBuffer> outputs,
                             const CallOptions& options = {});
  // outputs: one per rank on the root, empty elsewhere.
  Result<WorkPtr> gather(ConstBuffer input, std::span<const MutableBuffer> outputs, int root,
                         const CallOptions& options = {});
  // inputs: one per rank on the root, empty elsewhere.
  Result<WorkPtr> scatter(std::span<const ConstBuffer> inputs, MutableBuffer output, int root,
                          const CallOptions& options = {});
  Result<WorkPtr> barrier(const CallOptions& options = {});

  // Matched in order per (source, tag). A send is done when its memory may be reused. Sizes must be
  // equal on both sides, else Mismatch on both. Both may be this rank itself.
  Result<WorkPtr> send(ConstBuffer data, int destination, int32_t tag,
                       const CallOptions& options = {});
  Result<WorkPtr> recv(MutableBuffer data, int source_or_any, int32_t tag,
                       const CallOptions& options = {});

  // Drives the engine in the caller's thread until all these works are done, whatever their
  // statuses. timeout_ms < 0: no limit beside the works' own. Timeout here leaves them in flight,
  // and so does what `interrupt` returns if it is not Ok: it is called about every 100 ms of a wait
  // and when a signal interrupts it. A send to this rank itself that is too long to be kept aside,
  // and that no receive has been posted for, would never end: it ends at once, with
  // InvalidArgument.
  Status wait_all(std::span<Work* const> works, int64_t timeout_ms,
                  const InterruptCheck& interrupt);
  // The same of one, and returns its status.
  Status wait(Work& work, int64_t timeout_ms, const InterruptCheck& interrupt);

  // Ok, or why the group can no longer be used.
  Status failure() const;
  // Ranks that are dead, cannot be reached or have left, as far as this rank knows.
  std::vector<int> lost_ranks() const;
  // Fails everything in flight with Aborted and all later operations. Any thread; does not block.
  void abort(const std::string& reason);
  // The same on this rank; its peers fail only in what they cannot end without it.
  void leave(const std::string& reason);

  // Makes a group of the ranks that are not gone and not excluded by any of them; what is
  // guaranteed is in shrinking.h. All that stay call it, whether this group has failed or not, and
  // need not name the same. What is in flight here goes on.
  Result<ShrinkResult> shrink(std::span<const int> excluded, int64_t timeout_ms,
                              const InterruptCheck& interrupt);

 private:
  // An operation of this kind to fill in.
  std::unique_ptr<CollectiveOp> begin(Collective collective, Algorithm algorithm, int root);
  // The same of all_to_all, gather or scatter; block_bytes: of one of this rank's blocks.
  std::unique_ptr<CollectiveOp> begin_blocks(Collective collective, uint64_t block_bytes, int root,
                                             const CallOptions& options);
  Result<WorkPtr> submit(std::unique_ptr<CollectiveOp> op, const CallOptions& options);
  Result<WorkPtr> start_contiguous(Collective collective, const void* input, void* output,
                                   uint64_t bytes, Reduction reduction, int root,
                                   const CallOptions& options);
  int64_t deadline_ns(int64_t now_ns, const CallOptions& options) const;
  Reduction reduction(DType dtype, ReduceOp op) const;
  const Plan& plan_for(Collective collective, Algorithm algorithm, int root);
  Status check_root(int root) const;
  Status check_peer(const char* argument, int peer) const;
  Status check_list(const char* argument, size_t length) const;
  Status check_reduction(DType dtype, ReduceOp op) const;

  std::unique_ptr<Group> group_;
  const uint32_t token_;
  const Islands islands_;
  EngineContext context_;
  const Choices choices_;
  std::atomic<int64_t> timeout_ms_;
  std::shared_ptr<void> keeps_;
  WorkPool works_;

  struct RootedPlan {
    int root;
    Plan plan;
  };
  std::mutex plans_mutex_;
  std::vector<std::unique_ptr<const RootedPlan>> plans_;  // never taken out
  std::array<std::atomic<const RootedPlan*>, kCollectives> newest_plans_{};

  const std::unique_ptr<Shrinking> shrinking_;
};

}  // namespace rdmacoll
