// Group: set-up and the driver's round. What fails a group is in group_checks.cc, how it ends in
// group_life.cc. Floor: engine/group. Thread: see group.h.
#include "csrc/engine/group/group.h"

#include "csrc/base/check.h"

namespace rdmacoll {

Group::Group(const Clock& clock, std::unique_ptr<PeerLinks> links, const Heap* heap,
             const Config& config)
    : clock_(clock),
      to_time_of_day_ns_(clock.to_time_of_day_ns()),
      members_(clock, std::move(links)),
      call_log_(members_.block().base + members_.layout().call_log().own),
      executor_(members_.links(), heap, config, clock),
      collectives_(members_.links(), executor_, call_log_, log_, to_time_of_day_ns_),
      p2p_(members_.links(), heap, config, clock, log_),
      call_logs_(members_.links()),
      comparison_(call_logs_, members_.world()),
      shrink_states_(clock, members_.links()),
      heartbeats_(members_.links(), config.stall_timeout_ms * 1'000'000),
      failure_(clock, members_, call_logs_),
      submissions_(load_) {
  members_.links().when_changed([this] { submissions_.note_change(); });
  submissions_.note_change();  // for those that were met before
}

Group::~Group() { members_.links().when_changed(nullptr); }

void Group::waits_for_own(Work& work) {
  work.set_waited_for();
  submissions_.note_change();
}

bool Group::advance(std::vector<Completion>& finished) {
  check_driver();
  const size_t finished_before = finished.size();
  if (load_.has_new.load(std::memory_order_acquire)) take_submissions(finished);
  bool moved = shrink_states_.advance(finished);
  moved |= life_ == Life::Sound ? advance_operations(finished) : advance_failure(finished);
  if (call_log_.has_message() && p2p_.idle()) call_log_.set_message(std::nullopt);
  const size_t ended = finished.size() - finished_before;
  load_.in_flight.fetch_sub(ended, std::memory_order_release);
  return moved || ended > 0;
}

bool Group::beat() {
  heartbeats_.beat();
  const PeerLinks& links = members_.links();
  if (!idle() || links.all_met()) return false;
  for (uint32_t peer = 0; peer < links.world(); ++peer) {
    if (peer == links.rank() || links.at(peer) == nullptr) continue;
    const auto said = members_.status_of(peer);
    if (!said || said->reason != ExitReason::Failed) continue;
    if (!heard_of_failure_.exchange(true)) submissions_.note_change();
  }
  return true;  // for what comes when transports are polled, of those who want to meet among it
}

// Who is met after this rank has said its last word is told at once.
void Group::take_new_links() {
  for (const uint32_t rank : members_.links().take_new()) {
    p2p_.note_met(rank);
    if (life_ >= Life::Draining) tell(rank);
  }
}

bool Group::advance_operations(std::vector<Completion>& finished) {
  bool moved = collectives_.advance(finished);
  if (!executor_.status().ok()) {
    fail(executor_.status(), "", finished);
    return true;
  }
  if (!p2p_.idle()) moved |= p2p_.advance(finished);
  return moved;
}

void Group::take_submissions(std::vector<Completion>& finished) {
  take_new_links();
  const bool failed = submissions_.take([&](Submissions::Batch& batch) {
    for (auto& op : batch.collectives) collectives_.push(std::move(op));
    for (SendOp& op : batch.sends) p2p_.send(std::move(op), finished);
    for (RecvOp& op : batch.recvs) p2p_.recv(std::move(op), finished);
    p2p_.withdraw_own(finished);
    if (!batch.shrink_read) return;
    give_up_stalled(batch.shrink_read->ranks);
    shrink_states_.begin(std::move(*batch.shrink_read));
  });
  if (failed) {
    fail_in_flight(finished);
  } else if (life_ == Life::Sound && load_.in_flight == 0 && heard_of_failure_.load()) {
    pass_on_failure(finished);
  }
}

}  // namespace rdmacoll
