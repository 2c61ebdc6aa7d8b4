// Group: the state of a communicator on this rank: its ports, the collective that runs and those
// queued behind it, its point-to-point traffic, and how it fails.
// Floor: engine/group. Thread: submit(), waits_for_own(), beat(), fail_soon(), failure(), is_gone()
// and lost_ranks() any; the rest belongs to the driver.
//
// Failure. A group fails as a whole: what is in flight ends with the status, later submissions are
// refused with it, and every member is told by a status line, so that nobody is left waiting for a
// rank that has given up. A peer that is gone (left, or dead) fails the group only when an
// operation cannot go on without it: what it had sent before is still good. Before it fails, a rank
// reads what the others are in (call_log_reader.h) and puts it into the error.
//
// A collective whose output peers may write (landing.h) ends only when none of them can do so any
// more: all it had to write has come, or its own last word, which comes behind all it wrote; and
// one whose input a device reads for peers, when it has read. A peer that this takes too long with
// is cut off from this process: its later writes are refused, but so is all that other groups would
// hear from it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/fifo.h"
#include "csrc/base/spares.h"
#include "csrc/base/status.h"
#include "csrc/engine/channel/layout.h"
#include "csrc/engine/channel/port.h"
#include "csrc/engine/collective/executor.h"
#include "csrc/engine/collective/operation.h"
#include "csrc/engine/drive/driven.h"
#include "csrc/engine/failure/call_log.h"
#include "csrc/engine/failure/call_log_reader.h"
#include "csrc/engine/failure/comparison.h"
#include "csrc/engine/failure/heartbeat_monitor.h"
#include "csrc/engine/failure/shrink_state_reader.h"
#include "csrc/engine/p2p/p2p.h"
#include "csrc/engine/recorder/flight_recorder.h"
#include "csrc/engine/work/work.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

struct CollectiveOp {
  Operation operation;
  CollectiveCall call;  // the same in few words, once it has its number
  WorkPtr work;
  int64_t started_ns = 0;
  int64_t deadline_ns = 0;
  uint32_t record = FlightRing::kNone;  // in the flight recorder
};

class Group final : public Driven {
 public:
  // The heap is this rank's, or nullptr.
  Group(const Clock& clock, GroupBlocks blocks, const Heap* heap, const Config& config);
  ~Group() override;

  uint32_t rank() const { return rank_; }
  uint32_t world() const { return static_cast<uint32_t>(links_.size()); }
  const std::vector<Link>& links() const { return links_; }
  const Region& block() const { return block_; }
  const Layout& layout() const { return layout_; }
  // Before the group is used.
  void record_in(FlightLog log) { log_ = std::move(log); }

  // --- any thread -----------------------------------------------------------------------------
  // An empty operation to fill and submit; recycled, so that the steady state allocates nothing.
  std::unique_ptr<CollectiveOp> blank();
  // Gives the operation its place in the order of the group. The status is failure()'s.
  Status submit(std::unique_ptr<CollectiveOp> op);
  Status submit(SendOp op);
  Status submit(RecvOp op);
  // Somebody waits for this send to the own rank: without a posted receive it ends with an error.
  void waits_for_own(Work& work);
  // Also of a group that has failed; one at a time.
  void submit(ShrinkStateRead op);
  // What a rank's last word to the others is: they fail at once, or only where they need it.
  enum class Farewell : uint16_t { Left = 1, Failed = 2 };

  // One heartbeat of this process (heartbeat_monitor.h).
  void beat() override { heartbeats_.beat(); }

  // The driver fails the group with this at its next round. The first status stays.
  void fail_soon(Status status, Farewell farewell = Farewell::Failed);
  Status failure() const;
  // Whether it is dead, cannot be reached, has left the group, or did not run for too long.
  bool is_gone(uint32_t peer) const;
  // Those that are gone, and who others that gave the group up said was.
  RankSet lost_ranks() const;

  // --- the driver -----------------------------------------------------------------------------
  bool advance(std::vector<Completion>& finished) override;
  void check(std::vector<Completion>& finished) override;
  void close(std::vector<Completion>& finished) override;

 private:
  template <typename Op>
  Status enqueue(std::vector<Op>& submissions, Op op);
  void take_submissions(std::vector<Completion>& finished);
  bool advance_collectives(std::vector<Completion>& finished);
  void check_deadlines(std::vector<Completion>& finished);
  void check_peers(std::vector<Completion>& finished);
  void check_calls(std::vector<Completion>& finished);
  void check_heartbeats(std::vector<Completion>& finished);
  void expel(uint32_t peer);
  bool needs(uint32_t peer) const { return executor_.needs(peer) || p2p_.needs(peer); }
  std::string missing_ranks() const;
  std::optional<MessageCall> oldest_message() const;
  int64_t time_of_day_ns(int64_t clock_ns) const { return clock_ns + to_time_of_day_ns_; }
  std::string in_hand() const;         // for people: what is in flight
  std::string failure_report() const;  // for people: what every rank is in
  const Line& status_line(uint32_t peer) const;
  std::string end_of(uint32_t peer) const;  // "": it has not ended
  void note_lost(uint32_t peer);
  bool is_sound() const { return !failed_ && failing_.ok(); }
  Status heard_from(uint32_t peer);  // Ok, or that it is gone or has given the group up
  void fail(Status status, std::vector<Completion>& finished);
  bool conclude(std::vector<Completion>& finished);
  void fail_in_flight(const Status& status, std::vector<Completion>& finished);
  bool recall(std::vector<Completion>& finished);
  bool cut_off_in_time(uint32_t peer) const;
  void tell_peers(Farewell farewell, const std::string& text);
  Farewell farewell() const;

  const Clock& clock_;
  const int64_t to_time_of_day_ns_;
  const uint32_t rank_;
  const Layout layout_;
  const Region block_;
  std::vector<Link> links_;
  std::vector<std::vector<Port>> ports_;  // [channel][peer]
  Executor executor_;
  FlightLog log_;
  PointToPoint p2p_;
  CallLog call_log_;
  CallLogReader call_logs_;
  Comparison comparison_;
  ShrinkStateReader shrink_states_;
  HeartbeatMonitor heartbeats_;

  Spares<CollectiveOp> spares_;

  mutable std::mutex mutex_;  // the fields down to the blank line
  std::vector<std::unique_ptr<CollectiveOp>> new_collectives_;
  std::vector<SendOp> new_sends_;
  std::vector<RecvOp> new_recvs_;
  std::optional<ShrinkStateRead> new_shrink_read_;
  Status failure_;
  Farewell farewell_ = Farewell::Failed;
  std::optional<uint32_t> expelled_;  // the one that did not run
  std::optional<uint32_t> lost_;      // the rank whose end was the first cause

  uint64_t next_sequence_ = 1;
  Fifo<std::unique_ptr<CollectiveOp>> queue_;
  std::unique_ptr<CollectiveOp> current_;
  Status failing_;  // with this, once the others' call logs are read
  int64_t report_until_ns_ = 0;
  bool failed_ = false;  // the driver has acted on failure_
  int64_t recall_until_ns_ = 0;
  std::string cause_;  // in few words, for the peers; empty: the failure's own
};

}  // namespace rdmacoll
