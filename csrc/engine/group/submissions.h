// Submissions: what any thread hands to the driver of a group: operations, and that the group is to
// fail. After that it accepts no operation. Floor: engine/group. Thread: any, but for take().
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/engine/channel/member_status.h"
#include "csrc/engine/drive/driven.h"
#include "csrc/engine/failure/shrink_state_reader.h"
#include "csrc/engine/group/collective_queue.h"
#include "csrc/engine/p2p/p2p.h"

namespace rdmacoll {

class Submissions {
 public:
  // What is new in `load` is set here.
  explicit Submissions(Load& load) : load_(load) {}

  // The status is failure()'s; if it is not Ok, the operation is dropped.
  Status add(std::unique_ptr<CollectiveOp> op);
  Status add(SendOp op);
  Status add(RecvOp op);
  // A group that has failed takes it, too. One at a time.
  void add(ShrinkStateRead op);
  // The driver is to look at the group, although nothing was added.
  void note_change() { load_.has_new.store(true, std::memory_order_release); }

  // The group fails with this in the driver's next round. The first status stays.
  void fail(Status status, ExitReason reason);
  Status failure() const;
  ExitReason exit_reason() const;

  struct Batch {
    std::vector<std::unique_ptr<CollectiveOp>> collectives;
    std::vector<SendOp> sends;
    std::vector<RecvOp> recvs;
    std::optional<ShrinkStateRead> shrink_read;
  };
  // Has everything since the last time moved out by accept(Batch&); whether the group is to fail,
  // or has failed. It holds the mutex: whoever submits and then waits finds its operation accepted
  // before what it says by waiting is looked at (PointToPoint::withdraw_own). The driver's.
  template <typename Accept>
  bool take(Accept accept) {
    std::lock_guard<std::mutex> lock(mutex_);
    load_.has_new.store(false, std::memory_order_relaxed);
    accept(new_);
    new_.collectives.clear();
    new_.sends.clear();
    new_.recvs.clear();
    new_.shrink_read.reset();
    return !failure_.ok();
  }

 private:
  template <typename Op>
  Status add(std::vector<Op>& to, Op op);
  void count_one();

  Load& load_;
  mutable std::mutex mutex_;  // what follows
  Batch new_;
  Status failure_;
  ExitReason reason_ = ExitReason::Failed;
};

}  // namespace rdmacoll
