// PointToPoint: what happens when time is over, and what is told of operations in flight.
// Floor: engine/p2p. Thread: the driver.
#include "csrc/base/check.h"
#include "csrc/engine/p2p/p2p.h"

namespace rdmacoll {

MessageCall SendOp::call() const {
  return {.bytes = bytes,
          .peer = static_cast<int32_t>(peer),
          .tag = tag,
          .started_ns = started_ns,
          .is_send = 1};
}

MessageCall RecvOp::call() const {
  return {.bytes = bytes, .peer = source, .tag = tag, .started_ns = started_ns};
}

Status PointToPoint::expire(int64_t now_ns, std::vector<Completion>& finished) {
  for (size_t i = 0; i < posted_.size();) {
    if (posted_[i].deadline_ns > now_ns) {
      ++i;
      continue;
    }
    const RecvOp op = posted_.take_out(i);
    finish(
        op,
        Status(StatusCode::Timeout, "Timed out in " + describe(op.call()) + ": nobody has sent it"),
        finished);
  }
  expire_own(now_ns, finished);
  const auto overdue = [&](const auto& op) { return op.deadline_ns <= now_ns; };
  for (const auto& known : known_) {
    const Peer& state = *known;
    const uint32_t peer = state.rank;
    for (const auto* queue : {&state.unannounced, &state.announced, &state.cleared}) {
      const size_t found = queue->find(overdue);
      if (found == queue->size()) continue;
      return Status(
          StatusCode::Timeout,
          "Timed out in " + describe((*queue)[found].call()) + ": rank " + std::to_string(peer) +
              (queue == &state.cleared ? " stopped taking the data" : " has not received it"));
    }
    for (const auto* queue : {&state.matched, &state.incoming, &state.expected}) {
      const size_t found = queue->find(overdue);
      if (found == queue->size()) continue;
      const RecvOp& op = (*queue)[found];
      return Status(StatusCode::Timeout, "recv from rank " + std::to_string(peer) +
                                             " timed out after " + std::to_string(op.moved) +
                                             " of " + std::to_string(op.bytes) + " bytes");
    }
  }
  return Status();
}

std::optional<MessageCall> PointToPoint::oldest() const {
  for (const auto& known : known_) {
    const Peer& state = *known;
    for (const auto* queue : {&state.incoming, &state.expected, &state.matched}) {
      if (!queue->empty()) return queue->front().call();
    }
    for (const auto* queue : {&state.cleared, &state.announced, &state.unannounced}) {
      if (!queue->empty()) return queue->front().call();
    }
  }
  if (!posted_.empty()) return posted_.front().call();
  return std::nullopt;
}

bool PointToPoint::needs(uint32_t peer) const {
  const Peer* known = find(peer);
  if (known == nullptr) return false;  // nothing was ever to come of it, or to go there
  const Peer& state = *known;
  if (!state.unannounced.empty() || !state.announced.empty() || !state.cleared.empty() ||
      !state.matched.empty() || !state.incoming.empty() || !state.expected.empty()) {
    return true;
  }
  const auto waits_for_it = [&](const RecvOp& op) {
    return op.source != kAnySource && static_cast<uint32_t>(op.source) == peer;
  };
  return posted_.find(waits_for_it) != posted_.size();
}

void PointToPoint::fail_all(const Status& status, std::vector<Completion>& finished) {
  // With their envelopes: a receive that was submitted in time may still be taken after this.
  fail_own(status, finished);
  uint64_t sending = 0;
  for (const auto& known : known_) {
    Peer& state = *known;
    const uint32_t peer = state.rank;
    const size_t stays = is_sending_to(peer) ? 1 : 0;
    sending += stays;
    while (state.cleared.size() > stays) {
      finish(state.cleared.take_out(state.cleared.size() - 1), status, finished);
    }
    for (auto* queue : {&state.unannounced, &state.announced}) {
      while (!queue->empty()) finish(queue->pop(), status, finished);
    }
    for (auto* queue : {&state.matched, &state.incoming}) {
      for (size_t i = 0; i < queue->size(); ++i) end_placement((*queue)[i], peer);
    }
    while (!state.matched.empty()) {
      const RecvOp op = state.matched.pop();
      if (op.fits()) {
        finish(op, status, finished);
      } else {
        --pending_;
      }
    }
    for (auto* queue : {&state.incoming, &state.expected}) {
      while (!queue->empty()) finish(queue->pop(), status, finished);
    }
  }
  while (!posted_.empty()) finish(posted_.pop(), status, finished);
  RDMACOLL_CHECK(pending_ == sending);
}

void PointToPoint::fail_sending(const Status& status, std::vector<Completion>& finished) {
  for (const auto& state : known_) {
    if (state->cleared.empty()) continue;
    if (!is_read_by_device(state->cleared.front(), *state)) continue;
    finish(state->cleared.pop(), status, finished);
  }
}

}  // namespace rdmacoll
