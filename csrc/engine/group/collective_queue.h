// CollectiveQueue: the collectives of a group in the order in which they were submitted: the one
// at hand, which runs once its peers are met, and those behind it. Floor: engine/group. Thread:
// blank() any; the rest the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "csrc/base/fifo.h"
#include "csrc/base/status.h"
#include "csrc/engine/channel/peer_links.h"
#include "csrc/engine/collective/executor.h"
#include "csrc/engine/collective/operation.h"
#include "csrc/engine/failure/call_log.h"
#include "csrc/engine/recorder/flight_recorder.h"
#include "csrc/engine/work/spares.h"
#include "csrc/engine/work/work.h"

namespace rdmacoll {

struct CollectiveOp {
  Operation operation;
  CollectiveCall call;  // the same in few words, once it has its number
  WorkPtr work;
  int64_t started_ns = 0;
  int64_t deadline_ns = 0;
  uint32_t record = FlightRing::kNone;  // in the flight recorder
};

class CollectiveQueue {
 public:
  // to_time_of_day_ns: what the clock is behind the time of day. The logs outlive this.
  CollectiveQueue(PeerLinks& links, Executor& executor, CallLog& call_log, FlightLog& flight_log,
                  int64_t to_time_of_day_ns);
  ~CollectiveQueue();
  CollectiveQueue(const CollectiveQueue&) = delete;
  CollectiveQueue& operator=(const CollectiveQueue&) = delete;

  // An empty operation to fill and submit; recycled, so that the steady state allocates nothing.
  std::unique_ptr<CollectiveOp> blank();

  // Gives it the next number.
  void push(std::unique_ptr<CollectiveOp> op);
  // One round; whether anything moved. Nothing moves once the executor's status is not Ok.
  bool advance(std::vector<Completion>& finished) {
    bool moved = false;
    while (true) {
      if (current_ == nullptr) {
        if (queue_.empty()) return moved;
        take_next();
        moved = true;
      }
      if (!runs_ && !start()) return moved;
      moved |= executor_.advance();
      if (executor_.running() || !executor_.status().ok()) return moved;
      end_current(finished);
    }
  }
  // The one at hand; nullptr: there is none.
  const CollectiveOp* current() const { return current_.get(); }
  // Whether that runs: all peers of its plan are met.
  bool runs() const { return runs_; }
  // Whether it cannot run before this peer is met.
  bool waits_to_meet(uint32_t peer) const;

  // Ends those that have not begun.
  void fail_queued(const Status& status, std::vector<Completion>& finished);
  // Ends the one that runs; nobody may read or write its memory any more.
  void fail_current(const Status& status, std::vector<Completion>& finished);

 private:
  void take_next();
  bool start();
  void end_current(std::vector<Completion>& finished);

  PeerLinks& links_;
  Executor& executor_;
  CallLog& call_log_;
  FlightLog& flight_log_;
  const int64_t to_time_of_day_ns_;
  Spares<CollectiveOp> spares_;
  uint64_t next_sequence_ = 1;
  Fifo<std::unique_ptr<CollectiveOp>> queue_;
  std::unique_ptr<CollectiveOp> current_;
  bool runs_ = false;
};

}  // namespace rdmacoll
