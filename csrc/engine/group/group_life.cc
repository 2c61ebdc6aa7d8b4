// Group: how it ends. Its life, and what happens on the way from one state to the next.
// Floor: engine/group. Thread: see group.h.
#include <algorithm>

#include "csrc/base/check.h"
#include "csrc/engine/group/group.h"

namespace rdmacoll {
namespace {

// How long a peer that may write here has to say that it knows of a failure.
constexpr int64_t kDrainNs = 1'000'000'000;

}  // namespace

void Group::enter(Life next) {
  RDMACOLL_CHECK(next > life_);
  const bool was_told = life_ >= Life::Draining;
  life_ = next;
  switch (next) {
    case Life::Sound:
    case Life::Inquiring:
    case Life::Failed:
      return;
    case Life::Draining: {
      const ExitReason reason = submissions_.exit_reason();
      members_.tell_all(reason, last_words());
      if (reason == ExitReason::Failed) log_.failed(failure().message());
      drain_until_ns_ = clock_.now_ns() + kDrainNs;
      return;
    }
    case Life::Closed:
      if (!was_told) members_.tell_all(ExitReason::Left, "");
      log_.left();
      return;
  }
}

std::string Group::last_words() const {
  return failure_.cause().empty() ? failure().message() : failure_.cause();
}

void Group::tell(uint32_t peer) const {
  members_.tell(peer, submissions_.exit_reason(), last_words());
}

void Group::fail(Status error, std::string cause, std::vector<Completion>& finished) {
  enter(Life::Inquiring);
  failure_.begin(std::move(error), std::move(cause), whom_to_ask());
  finish_inquiry(finished);
}

// First those that are waited for. Where all can be asked, those that are not met are met for it;
// in larger groups all would meet the same few.
std::vector<uint32_t> Group::whom_to_ask() const {
  PeerLinks& links = members_.links();
  const bool asks_all = members_.world() <= kMaxCallLogsRead;
  std::vector<uint32_t> peers;
  for (uint32_t peer = 0; peer < members_.world(); ++peer) {
    if (peer == members_.rank() || (links.at(peer) == nullptr && !asks_all)) continue;
    links.want(peer);
    peers.push_back(peer);
  }
  std::stable_partition(peers.begin(), peers.end(), [&](uint32_t peer) { return needs(peer); });
  return peers;
}

bool Group::advance_failure(std::vector<Completion>& finished) {
  return life_ == Life::Inquiring ? finish_inquiry(finished) : drain(finished);
}

// Fails with the report, once there is one. Whether it did.
bool Group::finish_inquiry(std::vector<Completion>& finished) {
  if (!failure_.is_complete()) return false;
  const CollectiveOp* current = collectives_.current();
  fail_soon(failure_.with_report(current != nullptr ? current->operation.sequence : 0,
                                 to_time_of_day_ns_));
  fail_in_flight(finished);
  return true;
}

void Group::fail_in_flight(std::vector<Completion>& finished) {
  if (life_ < Life::Draining) enter(Life::Draining);
  drain(finished);
  collectives_.fail_queued(failure(), finished);
  p2p_.fail_all(failure(), finished);
}

// Ends the collective that failed, and sends, once their memory is the user's alone again: no peer
// can write into an output, and no transport reads a zero-copy message.
bool Group::drain(std::vector<Completion>& finished) {
  if (life_ != Life::Draining) return false;
  const bool runs = collectives_.runs();
  const bool ran = collectives_.current() != nullptr || p2p_.is_sending();
  for (uint32_t peer = 0; ran && peer < members_.world(); ++peer) {
    if (peer == members_.rank()) continue;
    const bool writes =
        runs && executor_.may_write_output(peer) && !members_.links().has_given_up(peer);
    const bool reads = (runs && executor_.is_sending_to(peer)) || p2p_.is_sending_to(peer);
    if ((writes || reads) && !lets_go(peer)) return false;
  }
  if (collectives_.current() != nullptr) collectives_.fail_current(failure(), finished);
  p2p_.fail_sending(failure(), finished);
  enter(Life::Failed);
  return ran;
}

// Whether the peer is dead, or took too long and is cut off: it uses no memory from here on.
bool Group::lets_go(uint32_t peer) const {
  const bool may_answer = members_.reach(peer).ok() && clock_.now_ns() < drain_until_ns_;
  return !may_answer && members_.cut_off(peer);
}

void Group::close(std::vector<Completion>& finished) {
  check_driver();
  const size_t finished_before = finished.size();
  if (!idle()) {
    fail_soon(Status(StatusCode::Aborted, "the group was destroyed with operations in flight"),
              ExitReason::Left);
  }
  take_submissions(finished);
  shrink_states_.end(Status(StatusCode::Aborted, "the group was destroyed"), finished);
  drain_until_ns_ = 0;  // nobody comes back to hear answers
  drain(finished);
  enter(Life::Closed);
  load_.in_flight.fetch_sub(finished.size() - finished_before, std::memory_order_release);
}

}  // namespace rdmacoll
