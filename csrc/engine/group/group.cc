// Group: set-up and the driver's round. What fails a group is in group_checks.cc, how it ends in
// group_life.cc. Floor: engine/group. Thread: see group.h.
#include "csrc/engine/group/group.h"

#include "csrc/base/check.h"

namespace rdmacoll {
namespace {

std::vector<std::vector<Port>> make_ports(const Members& members) {
  std::vector<std::vector<Port>> ports(kChannels);
  Link own;
  own.mapped = members.block().base;
  for (uint8_t channel = 0; channel < kChannels; ++channel) {
    ports[channel].reserve(members.world());
    for (uint32_t peer = 0; peer < members.world(); ++peer) {
      const Link& link = peer == members.rank() ? own : members.links()[peer];
      ports[channel].emplace_back(members.layout(), link, members.block(), channel, members.rank(),
                                  peer);
    }
  }
  return ports;
}

}  // namespace

Group::Group(const Clock& clock, GroupBlocks blocks, const Heap* heap, const Config& config)
    : clock_(clock),
      to_time_of_day_ns_(clock.to_time_of_day_ns()),
      members_(clock, std::move(blocks)),
      ports_(make_ports(members_)),
      call_log_(members_.block().base + members_.layout().call_log().own),
      executor_(members_.layout(), members_.rank(), members_.block().base, members_.links(), ports_,
                heap, config, clock),
      collectives_(executor_, call_log_, log_, to_time_of_day_ns_),
      p2p_(members_.rank(), members_.layout(), ports_, config, clock, log_),
      call_logs_(members_.layout(), members_.rank(), members_.block(), members_.links()),
      comparison_(call_logs_, members_.world()),
      shrink_states_(clock, members_.layout(), members_.block(), members_.links()),
      heartbeats_(members_.layout(), members_.block(), members_.links(),
                  config.stall_timeout_ms * 1'000'000),
      failure_(clock, members_, call_logs_),
      submissions_(load_) {
  RDMACOLL_CHECK(members_.block().bytes >= members_.layout().total_bytes());
}

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
  const bool failed = submissions_.take([&](Submissions::Batch& batch) {
    for (auto& op : batch.collectives) collectives_.push(std::move(op));
    for (SendOp& op : batch.sends) p2p_.send(std::move(op), finished);
    for (RecvOp& op : batch.recvs) p2p_.recv(std::move(op), finished);
    p2p_.withdraw_own(finished);
    if (batch.shrink_read) shrink_states_.begin(std::move(*batch.shrink_read));
  });
  if (failed) fail_in_flight(finished);
}

}  // namespace rdmacoll
