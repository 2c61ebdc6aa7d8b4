// Group: what fails it: deadlines, peers that are gone or have failed, mismatched calls, processes
// that do not run. Floor: engine/group. Thread: see group.h.
#include <algorithm>

#include "csrc/engine/group/group.h"

namespace rdmacoll {

void Group::check(std::vector<Completion>& finished) {
  check_driver();
  if (life_ != Life::Sound || idle()) return;
  const size_t finished_before = finished.size();
  if (!p2p_.idle()) call_log_.set_message(oldest_message());
  check_deadlines(finished);
  if (life_ == Life::Sound) check_peers(finished);
  if (life_ == Life::Sound) check_calls(finished);
  if (life_ == Life::Sound) check_heartbeats(finished);
  load_.in_flight.fetch_sub(finished.size() - finished_before, std::memory_order_release);
}

void Group::check_deadlines(std::vector<Completion>& finished) {
  const int64_t now_ns = clock_.now_ns();
  const CollectiveOp* current = collectives_.current();
  if (current != nullptr && current->deadline_ns <= now_ns) {
    const int64_t waited_ms = (now_ns - current->started_ns) / 1'000'000;
    fail(Status(StatusCode::Timeout, "Timed out after " + std::to_string(waited_ms) + " ms in " +
                                         describe(current->call) + "; " + missing_ranks()),
         "it timed out; " + missing_ranks(), finished);
    return;
  }
  Status p2p = p2p_.expire(now_ns, finished);
  if (!p2p.ok()) fail(std::move(p2p), "", finished);
}

std::string Group::missing_ranks() const {
  std::string list;
  for (uint32_t peer = 0; peer < members_.world(); ++peer) {
    const bool is_met = members_.links().at(peer) != nullptr;
    if (peer == members_.rank()) continue;
    if (!collectives_.waits_to_meet(peer) && !(is_met && executor_.waits_for(peer))) continue;
    list += (list.empty() ? "" : ", ") + std::to_string(peer) + (is_met ? "" : " (not met)");
  }
  return "rank " + std::to_string(members_.rank()) + " waits for rank(s) " +
         (list.empty() ? "none" : list);
}

std::optional<MessageCall> Group::oldest_message() const {
  std::optional<MessageCall> message = p2p_.oldest();
  if (message) message->started_ns += to_time_of_day_ns_;
  return message;
}

std::string Group::in_hand() const {
  if (const CollectiveOp* current = collectives_.current()) return describe(current->call);
  const std::optional<MessageCall> message = oldest_message();
  return message ? describe(*message) : "a point-to-point operation";
}

bool Group::needs(uint32_t peer) const {
  if (members_.links().at(peer) == nullptr) {
    return collectives_.waits_to_meet(peer) || p2p_.needs(peer);
  }
  return executor_.needs(peer) || p2p_.needs(peer);
}

bool Group::waits_for(uint32_t peer) const {
  return needs(peer) || (members_.links().at(peer) != nullptr && executor_.waits_for(peer));
}

void Group::check_peers(std::vector<Completion>& finished) {
  for (uint32_t peer = 0; peer < members_.world() && life_ == Life::Sound; ++peer) {
    if (peer == members_.rank()) continue;
    const auto said = members_.status_of(peer);
    if (said && said->reason == ExitReason::Failed) {
      if (said->lost) members_.note_lost(*said->lost);
      // The cause is passed on as it came, so that the last to hear still hears of the first one.
      fail(Status(StatusCode::PeerFailed, in_hand() + " cannot end: rank " + std::to_string(peer) +
                                              " gave the group up: " + said->cause),
           said->cause, finished);
      return;
    }
    const Status reached =
        said ? Status(StatusCode::PeerFailed, "it has left the group") : members_.reach(peer);
    if (!reached.ok()) {
      go_on_without(peer, reached, finished);
    } else if (members_.links().at(peer) == nullptr) {
      continue;
    } else if (Status compared = executor_.compare_with(peer); !compared.ok()) {
      fail(std::move(compared), "", finished);
    }
  }
}

// An idle rank may lie between one that has given the group up and one that waits for word of it.
void Group::pass_on_failure(std::vector<Completion>& finished) {
  for (uint32_t peer = 0; peer < members_.world(); ++peer) {
    const auto said = peer == members_.rank() ? std::nullopt : members_.status_of(peer);
    if (!said || said->reason != ExitReason::Failed) continue;
    if (said->lost) members_.note_lost(*said->lost);
    failure_.take_cause(said->cause);
    fail_soon(Status(StatusCode::PeerFailed,
                     "rank " + std::to_string(peer) + " gave the group up: " + said->cause));
    fail_in_flight(finished);
    return;
  }
}

void Group::go_on_without(uint32_t peer, const Status& why, std::vector<Completion>& finished) {
  // What it sent before is all here: take that first. It reads none of its zero-copy messages any
  // more, those that are sent only now among them.
  do {
    executor_.drop_zero_copy(peer);
  } while (life_ == Life::Sound && advance_operations(finished));
  if (life_ != Life::Sound || !needs(peer)) return;
  const bool is_gone = why.code() == StatusCode::PeerFailed;
  const std::string what =
      "rank " + std::to_string(peer) + (is_gone ? " is gone" : " cannot be reached");
  if (is_gone) members_.note_lost(peer);
  fail(Status(why.code(), in_hand() + " cannot end: " + what + " (" + why.message() + ")"), what,
       finished);
}

void Group::check_calls(std::vector<Completion>& finished) {
  const CollectiveOp* current = collectives_.current();
  if (!collectives_.runs()) return;
  const auto other =
      comparison_.look(current->call, current->started_ns, clock_.now_ns(), [&](uint32_t peer) {
        return peer != members_.rank() && members_.links().at(peer) != nullptr &&
               executor_.needs(peer);
      });
  if (other) fail(mismatch_with(*other, current->call), "", finished);
}

void Group::check_heartbeats(std::vector<Completion>& finished) {
  // One that has left the group shows no heartbeat any more; a put to it ends all the same.
  const auto stalled = heartbeats_.look(clock_.now_ns(), [&](uint32_t peer) {
    return peer != members_.rank() && waits_for(peer) && !members_.status_of(peer) &&
           members_.reach(peer).ok();
  });
  if (!stalled) return;
  const std::string who = "rank " + std::to_string(*stalled);
  members_.note_lost(*stalled);
  fail(Status(StatusCode::PeerFailed,
              in_hand() + " cannot end: " + who + " does not run: it has had no heartbeat for " +
                  std::to_string(heartbeats_.bound_ns() / 1'000'000) +
                  " ms (it is stopped, in a debugger, or its container is paused; "
                  "RDMACOLL_STALL_TIMEOUT_MS sets how long that may be)"),
       who + " does not run", finished);
  members_.evict(*stalled);
}

// Those that are to make a smaller group with this rank, whether this one has failed or not.
void Group::give_up_stalled(const std::vector<uint32_t>& shrink_with) {
  const auto stalled = heartbeats_.look(clock_.now_ns(), [&](uint32_t peer) {
    return std::find(shrink_with.begin(), shrink_with.end(), peer) != shrink_with.end() &&
           !members_.is_gone(peer);
  });
  if (stalled) members_.evict(*stalled);
}

}  // namespace rdmacoll
