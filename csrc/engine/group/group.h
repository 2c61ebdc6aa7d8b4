// Group: the state of a communicator on this rank: its ports, its collectives, its point-to-point
// traffic, and its life from sound to closed.
// Floor: engine/group. Thread: blank(), submit(), waits_for_own(), beat(), fail_soon(), failure()
// and members() any; the rest belongs to the driver.
//
// Failure. A group fails as a whole: what is in flight ends with the status, later submissions are
// refused with it, and every member is told by a status line (member_status.h), so that nobody is
// left waiting for a rank that has given up. A peer that is gone (left, or dead) fails the group
// only when an operation cannot go on without it: what it had sent before is still good.
//
// A collective whose output peers may write (direct_placement.h) ends only when none of them can do
// so any more: all it had to write has come, or its status line, which comes behind all it wrote;
// and one whose input a device reads for peers, when it has read. A peer that this takes too long
// with is cut off from this process: its later writes are refused, but so is all that other groups
// would hear from it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/channel/peer_links.h"
#include "csrc/engine/collective/executor.h"
#include "csrc/engine/drive/driven.h"
#include "csrc/engine/failure/call_log.h"
#include "csrc/engine/failure/call_log_reader.h"
#include "csrc/engine/failure/comparison.h"
#include "csrc/engine/failure/heartbeat_monitor.h"
#include "csrc/engine/failure/shrink_state_reader.h"
#include "csrc/engine/group/collective_queue.h"
#include "csrc/engine/group/group_failure.h"
#include "csrc/engine/group/members.h"
#include "csrc/engine/group/submissions.h"
#include "csrc/engine/p2p/p2p.h"
#include "csrc/engine/recorder/flight_recorder.h"
#include "csrc/engine/work/work.h"

namespace rdmacoll {

class Group final : public Driven {
 public:
  // The heap is this rank's, or nullptr.
  Group(const Clock& clock, std::unique_ptr<PeerLinks> links, const Heap* heap,
        const Config& config);
  ~Group() override;

  const Members& members() const { return members_; }
  // Before the group is used.
  void record_in(FlightLog log) { log_ = std::move(log); }

  // --- any thread -----------------------------------------------------------------------------
  // An empty operation to fill and submit.
  std::unique_ptr<CollectiveOp> blank() { return collectives_.blank(); }
  // Gives the operation its place in the order of the group. The status is failure()'s.
  Status submit(std::unique_ptr<CollectiveOp> op) { return submissions_.add(std::move(op)); }
  Status submit(SendOp op) { return submissions_.add(std::move(op)); }
  Status submit(RecvOp op) { return submissions_.add(std::move(op)); }
  // Also of a group that has failed; one at a time.
  void submit(ShrinkStateRead op) { submissions_.add(std::move(op)); }
  // Somebody waits for this send to the own rank: without a posted receive it ends with an error.
  void waits_for_own(Work& work);

  // One heartbeat of this process (heartbeat_monitor.h), and a look at what peers have said: an
  // idle group is not driven.
  bool beat() override;

  // The driver fails the group with this at its next round. The first status stays.
  void fail_soon(Status status, ExitReason reason = ExitReason::Failed) {
    submissions_.fail(std::move(status), reason);
  }
  Status failure() const { return submissions_.failure(); }

  // --- the driver -----------------------------------------------------------------------------
  bool advance(std::vector<Completion>& finished) override;
  void check(std::vector<Completion>& finished) override;
  void close(std::vector<Completion>& finished) override;

 private:
  // A life goes down this list. It may skip, but never goes back.
  enum class Life : uint8_t {
    Sound,      // runs its operations
    Inquiring,  // nothing runs; what the others are in is being read for the error
    Draining,   // has failed; peers or a device may still use the memory of the collective that ran
    Failed,     // nothing is in flight
    Closed,     // nobody drives it any more
  };
  // The only place where the life changes.
  void enter(Life next);

  void take_new_links();
  bool advance_operations(std::vector<Completion>& finished);
  bool advance_failure(std::vector<Completion>& finished);
  void take_submissions(std::vector<Completion>& finished);

  // What fails it (group_checks.cc).
  void check_deadlines(std::vector<Completion>& finished);
  void check_peers(std::vector<Completion>& finished);
  void go_on_without(uint32_t peer, const Status& why, std::vector<Completion>& finished);
  void check_calls(std::vector<Completion>& finished);
  void check_heartbeats(std::vector<Completion>& finished);
  void give_up_stalled(const std::vector<uint32_t>& shrink_with);
  bool needs(uint32_t peer) const;
  bool waits_for(uint32_t peer) const;
  std::string missing_ranks() const;
  std::optional<MessageCall> oldest_message() const;
  std::string in_hand() const;  // for people: what is in flight

  // Its end (group_life.cc).
  void fail(Status error, std::string cause, std::vector<Completion>& finished);
  std::vector<uint32_t> whom_to_ask() const;
  void pass_on_failure(std::vector<Completion>& finished);
  void tell(uint32_t peer) const;
  std::string last_words() const;
  bool finish_inquiry(std::vector<Completion>& finished);
  void fail_in_flight(std::vector<Completion>& finished);
  bool drain(std::vector<Completion>& finished);
  bool lets_go(uint32_t peer) const;

  const Clock& clock_;
  const int64_t to_time_of_day_ns_;
  Members members_;
  FlightLog log_;
  CallLog call_log_;
  Executor executor_;
  CollectiveQueue collectives_;
  PointToPoint p2p_;
  CallLogReader call_logs_;
  Comparison comparison_;
  ShrinkStateReader shrink_states_;
  HeartbeatMonitor heartbeats_;
  GroupFailure failure_;
  Submissions submissions_;
  std::atomic<bool> heard_of_failure_{false};
  Life life_ = Life::Sound;
  int64_t drain_until_ns_ = 0;
};

}  // namespace rdmacoll
