// Group: how it fails and how it ends. Floor: engine/group. Thread: see group.h.
#include <algorithm>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/engine/failure/failure_report.h"
#include "csrc/engine/group/group.h"

namespace rdmacoll {
namespace {

// What the inline data of a status line hold.
struct StatusWire {
  uint16_t farewell;
  uint16_t lost;  // the rank whose end was the first cause, or kNobody
  char text[40];
};
static_assert(sizeof(StatusWire) <= kInlineBytes);
constexpr uint16_t kNobody = UINT16_MAX;
static_assert(kMaxWorld < kNobody);

// How long a failure waits for what other hosts' ranks are in.
constexpr int64_t kReportNs = 250'000'000;
// How long a peer that may write here has to say that it knows of a failure.
constexpr int64_t kRecallNs = 1'000'000'000;
constexpr int64_t kFenceMs = 1000;

StatusWire status_in(const Line& line) {
  StatusWire wire;
  std::memcpy(&wire, line.inline_data, sizeof(wire));
  return wire;
}

bool has_left(const StatusWire& wire) {
  return wire.farewell == static_cast<uint16_t>(Group::Farewell::Left);
}

}  // namespace

const Line& Group::status_line(uint32_t peer) const {
  return *reinterpret_cast<const Line*>(block_.base + layout_.status(peer));
}

void Group::fail_soon(Status status, Farewell farewell) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (failure_.ok()) {
    failure_ = std::move(status);
    farewell_ = farewell;
  }
  has_new_.store(true, std::memory_order_release);
}

Status Group::failure() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

Group::Farewell Group::farewell() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return farewell_;
}

void Group::note_lost(uint32_t peer) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!lost_) lost_ = peer;
}

bool Group::is_gone(uint32_t peer) const {
  const Line& line = status_line(peer);
  const bool said = line.counter.load(std::memory_order_acquire) != 0;
  if (said && has_left(status_in(line))) return true;
  if (!links_[peer].transport->peer_status(links_[peer].peer).ok()) return true;
  std::lock_guard<std::mutex> lock(mutex_);
  return expelled_ == peer;
}

RankSet Group::lost_ranks() const {
  RankSet lost(world());
  for (uint32_t peer = 0; peer < world(); ++peer) lost[peer] = peer != rank_ && is_gone(peer);
  std::lock_guard<std::mutex> lock(mutex_);
  if (lost_ && *lost_ != rank_) lost[*lost_] = true;
  return lost;
}

void Group::check(std::vector<Completion>& finished) {
  if (!is_sound() || idle()) return;
  const size_t finished_before = finished.size();
  if (!p2p_.idle()) call_log_.set_message(oldest_message());
  check_deadlines(finished);
  if (is_sound()) check_peers(finished);
  if (is_sound()) check_calls(finished);
  if (is_sound()) check_heartbeats(finished);
  in_flight_.fetch_sub(finished.size() - finished_before, std::memory_order_release);
}

void Group::check_deadlines(std::vector<Completion>& finished) {
  const int64_t now_ns = clock_.now_ns();
  if (current_ != nullptr && current_->deadline_ns <= now_ns) {
    const int64_t waited_ms = (now_ns - current_->started_ns) / 1'000'000;
    cause_ = "it timed out; " + missing_ranks();
    fail(Status(StatusCode::Timeout, "Timed out after " + std::to_string(waited_ms) + " ms in " +
                                         describe(current_->call) + "; " + missing_ranks()),
         finished);
    return;
  }
  Status p2p = p2p_.expire(now_ns, finished);
  if (!p2p.ok()) fail(std::move(p2p), finished);
}

std::string Group::missing_ranks() const {
  std::string list;
  for (uint32_t peer = 0; peer < world(); ++peer) {
    if (peer == rank_ || !executor_.needs(peer)) continue;
    list += (list.empty() ? "" : ", ") + std::to_string(peer);
  }
  return "rank " + std::to_string(rank_) + " waits for rank(s) " + (list.empty() ? "none" : list);
}

std::string Group::in_hand() const {
  if (current_ != nullptr) return describe(current_->call);
  const std::optional<MessageCall> message = oldest_message();
  return message ? describe(*message) : "a point-to-point operation";
}

Status Group::heard_from(uint32_t peer) {
  const Line& line = status_line(peer);
  if (line.counter.load(std::memory_order_acquire) == 0) {
    return links_[peer].transport->peer_status(links_[peer].peer);
  }
  const StatusWire wire = status_in(line);
  if (has_left(wire)) {
    return Status(StatusCode::PeerFailed, "it has left the group");
  }
  if (wire.lost < world()) note_lost(wire.lost);
  // Passed on as it came, so that the last to hear still hears of the first cause.
  cause_ = std::string(wire.text, strnlen(wire.text, sizeof(wire.text)));
  return Status(StatusCode::Aborted, cause_);
}

void Group::check_peers(std::vector<Completion>& finished) {
  for (uint32_t peer = 0; peer < world() && is_sound(); ++peer) {
    if (peer == rank_) continue;
    const std::string who = "rank " + std::to_string(peer);
    const Status heard = heard_from(peer);
    if (heard.code() == StatusCode::Aborted) {
      fail(Status(StatusCode::PeerFailed,
                  in_hand() + " cannot end: " + who + " gave the group up: " + heard.message()),
           finished);
      return;
    }
    if (heard.ok()) {
      Status compared = executor_.compare_with(peer);
      if (!compared.ok()) fail(std::move(compared), finished);
      continue;
    }
    // What it sent before is all here: take that first. What was lent to it it reads no more.
    executor_.forgive(peer);
    while (advance_collectives(finished) || (!p2p_.idle() && p2p_.advance(finished))) {
    }
    if (!is_sound() || !needs(peer)) continue;
    cause_ = who + " is gone";
    note_lost(peer);
    fail(Status(StatusCode::PeerFailed,
                in_hand() + " cannot end: " + who + " is gone (" + heard.message() + ")"),
         finished);
  }
}

void Group::check_calls(std::vector<Completion>& finished) {
  if (current_ == nullptr) return;
  const auto other =
      comparison_.look(current_->call, current_->started_ns, clock_.now_ns(),
                       [&](uint32_t peer) { return peer != rank_ && executor_.needs(peer); });
  if (other) fail(executor_.mismatch(*other), finished);
}

void Group::check_heartbeats(std::vector<Completion>& finished) {
  const auto stalled = heartbeats_.look(clock_.now_ns(), [&](uint32_t peer) {
    return peer != rank_ && needs(peer) &&
           links_[peer].transport->peer_status(links_[peer].peer).ok();
  });
  if (!stalled) return;
  const std::string who = "rank " + std::to_string(*stalled);
  cause_ = who + " does not run";
  note_lost(*stalled);
  fail(Status(StatusCode::PeerFailed,
              in_hand() + " cannot end: " + who + " does not run: it has had no heartbeat for " +
                  std::to_string(heartbeats_.bound_ns() / 1'000'000) +
                  " ms (it is stopped, in a debugger, or its container is paused; "
                  "RDMACOLL_STALL_TIMEOUT_MS sets how long that may be)"),
       finished);
  expel(*stalled);
}

// From here on it is as good as dead to this group, also where it cannot be cut off (shared memory:
// what it writes when it wakes it writes into a block that nobody uses any more).
void Group::expel(uint32_t peer) {
  const Link& link = links_[peer];
  [[maybe_unused]] const Status cut =
      link.transport->fence(link.peer, Deadline::after_ms(clock_, kFenceMs));
  std::lock_guard<std::mutex> lock(mutex_);
  expelled_ = peer;
}

void Group::fail(Status status, std::vector<Completion>& finished) {
  if (!is_sound()) return;
  failing_ = std::move(status);
  report_until_ns_ = clock_.now_ns() + kReportNs;
  std::vector<uint32_t> peers;
  for (uint32_t peer = 0; peer < world(); ++peer) {
    if (peer != rank_) peers.push_back(peer);
  }
  std::stable_partition(peers.begin(), peers.end(), [&](uint32_t peer) { return needs(peer); });
  call_logs_.begin(peers);
  conclude(finished);
}

// Fails with the report, once there is one. Whether it did.
bool Group::conclude(std::vector<Completion>& finished) {
  if (!call_logs_.done() && clock_.now_ns() < report_until_ns_) return false;
  fail_soon(Status(failing_.code(), failing_.message() + failure_report()));
  fail_in_flight(failure(), finished);
  return true;
}

std::string Group::failure_report() const {
  const int64_t now_ns = time_of_day_ns(clock_.now_ns());
  const uint64_t sequence = current_ != nullptr ? current_->operation.sequence : 0;
  FailureReport report;
  for (uint32_t rank = 0; rank < world(); ++rank) {
    const std::string end = rank == rank_ ? "" : end_of(rank);
    const std::string finding = call_logs_.finding(rank, sequence);
    if (end.empty()) {
      report.add(rank, finding.empty() ? "has called nothing yet" : finding,
                 call_logs_.waited_ns(rank, now_ns));
    } else {
      report.add(rank, end + (finding.empty() ? "" : ", " + finding));
    }
  }
  return report.text();
}

std::string Group::end_of(uint32_t peer) const {
  const Line& line = status_line(peer);
  if (line.counter.load(std::memory_order_acquire) != 0) {
    const bool left = has_left(status_in(line));
    return left ? "has left the group" : "gave the group up";
  }
  const Status status = links_[peer].transport->peer_status(links_[peer].peer);
  return status.ok() ? "" : "is gone (" + status.message() + ")";
}

void Group::fail_in_flight(const Status& status, std::vector<Completion>& finished) {
  if (!failed_) {
    tell_peers(farewell(), cause_.empty() ? status.message() : cause_);
    if (farewell() == Farewell::Failed) log_.failed(status.message());
    recall_until_ns_ = clock_.now_ns() + kRecallNs;
    failed_ = true;
  }
  recall(finished);
  while (!queue_.empty()) {
    const auto op = queue_.pop();
    log_.end_collective(op->record, false);
    finished.push_back({std::move(op->work), status});
  }
  p2p_.fail_all(status, finished);
}

// Ends the collective that failed, once its memory is the user's alone again: no peer can write
// into its output, and no device reads for a peer what was lent.
bool Group::recall(std::vector<Completion>& finished) {
  if (current_ == nullptr) return false;
  for (uint32_t peer = 0; peer < world(); ++peer) {
    if (peer == rank_) continue;
    const bool writes = executor_.may_land_from(peer) && !executor_.has_given_up(peer);
    if ((writes || executor_.is_sending_to(peer)) && !cut_off_in_time(peer)) return false;
  }
  log_.end_collective(current_->record, false);
  finished.push_back({std::move(current_->work), failure()});
  current_.reset();
  executor_.stop();
  return true;
}

// Whether it neither writes here nor is sent anything from here on: it is dead, or took too long.
bool Group::cut_off_in_time(uint32_t peer) const {
  const Link& link = links_[peer];
  if (link.transport->peer_status(link.peer).ok() && clock_.now_ns() < recall_until_ns_) {
    return false;
  }
  return link.transport->fence(link.peer, Deadline::after_ms(clock_, kFenceMs)).ok();
}

void Group::close(std::vector<Completion>& finished) {
  const size_t finished_before = finished.size();
  if (!idle()) {
    fail_soon(Status(StatusCode::Aborted, "the group was destroyed with operations in flight"),
              Farewell::Left);
  }
  take_submissions(finished);
  shrink_states_.end(Status(StatusCode::Aborted, "the group was destroyed"), finished);
  recall_until_ns_ = 0;  // nobody comes back to hear answers
  recall(finished);
  if (!failed_) tell_peers(Farewell::Left, "");
  log_.left();
  in_flight_.fetch_sub(finished.size() - finished_before, std::memory_order_release);
}

void Group::tell_peers(Farewell farewell, const std::string& text) {
  const auto lost = static_cast<uint16_t>(lost_.value_or(kNobody));
  StatusWire wire{static_cast<uint16_t>(farewell), lost, {}};
  std::copy_n(text.begin(), std::min(text.size(), sizeof(wire.text)), wire.text);
  Header header;
  header.inline_bytes = sizeof(wire);
  std::memcpy(header.inline_data, &wire, sizeof(wire));
  for (uint32_t peer = 0; peer < world(); ++peer) {
    if (peer == rank_) continue;
    const Link& link = links_[peer];
    const RemoteSlice line{link.region, layout_.status(rank_), kLineBytes};
    // A full queue to a peer that takes nothing must not hold up the failure; it has its deadline.
    for (int attempt = 0; attempt < 1000; ++attempt) {
      if (link.transport->signal(link.peer, kLandingChannel, line, 1, header) != Posted::Full)
        break;
      link.transport->poll();
    }
  }
}

}  // namespace rdmacoll
