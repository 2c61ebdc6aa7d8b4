// PointToPoint: matching, grants and the data behind them. Floor: engine. Thread: the driver.
#include "csrc/engine/p2p.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/check.h"

namespace rdmacoll {
namespace {

// What the inline data of an envelope and of a grant hold.
struct EnvelopeWire {
  uint64_t bytes;
  uint32_t number;
  int32_t tag;
  std::byte eager[kEagerBytes];
};
struct GrantWire {
  uint64_t bytes;  // that the receiver has room for; data follow only if the sender's are as many
  uint32_t number;
  uint32_t accepted;
};
static_assert(sizeof(EnvelopeWire) <= kInlineBytes && sizeof(GrantWire) <= kInlineBytes);

Status size_mismatch(uint32_t sender, uint64_t sent, uint32_t receiver, uint64_t room) {
  return Status(StatusCode::Mismatch,
                "rank " + std::to_string(sender) + " sends " + std::to_string(sent) +
                    " bytes but rank " + std::to_string(receiver) + " receives " +
                    std::to_string(room) + "; send and recv need tensors of equal size and dtype");
}

MessageCall call_of(const SendOp& op) {
  return {.bytes = op.bytes,
          .peer = static_cast<int32_t>(op.peer),
          .tag = op.tag,
          .started_ns = op.started_ns,
          .is_send = 1};
}

MessageCall call_of(const RecvOp& op) {
  return {.bytes = op.bytes, .peer = op.source, .tag = op.tag, .started_ns = op.started_ns};
}

bool matches(const RecvOp& op, uint32_t source, int32_t tag) {
  return (op.source == kAnySource || static_cast<uint32_t>(op.source) == source) && op.tag == tag;
}

}  // namespace

PointToPoint::PointToPoint(uint32_t rank, uint32_t world, std::vector<std::vector<Port>>& ports,
                           uint64_t slot_bytes, FlightLog& log)
    : rank_(rank), ports_(ports), slot_bytes_(slot_bytes), log_(log), peers_(world) {}

void PointToPoint::send(SendOp op) {
  ++pending_;
  op.record =
      log_.point_to_point(kFlightSend, op.bytes, static_cast<int>(op.peer), op.tag, op.started_ns);
  peers_[op.peer].unannounced.push_back(std::move(op));
}

void PointToPoint::recv(RecvOp op, std::vector<Completion>& finished) {
  ++pending_;
  op.record = log_.point_to_point(kFlightRecv, op.bytes, op.source, op.tag, op.started_ns);
  const auto found = std::find_if(unexpected_.begin(), unexpected_.end(),
                                  [&](const Envelope& e) { return matches(op, e.source, e.tag); });
  if (found == unexpected_.end()) {
    posted_.push_back(std::move(op));
    return;
  }
  const Envelope envelope = *found;
  unexpected_.erase(found);
  match(std::move(op), envelope, finished);
}

bool PointToPoint::advance(std::vector<Completion>& finished) {
  bool moved = false;
  for (uint32_t peer = 0; peer < peers_.size(); ++peer) {
    if (peer == rank_) continue;
    moved |= pull_data(peer, finished);
    moved |= take_grants(peer, finished);
    moved |= push_data(peer, finished);
    moved |= take_envelopes(peer, finished);
    moved |= grant_receives(peer);
    moved |= announce_sends(peer, finished);
  }
  return moved;
}

bool PointToPoint::announce_sends(uint32_t peer, std::vector<Completion>& finished) {
  Peer& state = peers_[peer];
  Port& out = port(kEnvelopeChannel, peer);
  bool moved = false;
  while (!state.unannounced.empty() && out.can_send()) {
    SendOp& op = state.unannounced.front();
    EnvelopeWire wire{op.bytes, state.envelopes, op.tag, {}};
    const bool eager = op.bytes <= kEagerBytes;
    if (eager && op.bytes > 0) std::memcpy(wire.eager, op.data, op.bytes);
    std::memcpy(out.outgoing(sizeof(wire)), &wire, sizeof(wire));
    if (!out.announce(sizeof(wire))) break;
    op.number = state.envelopes++;
    if (eager) {
      finish(op, Status(), finished);
    } else {
      state.announced.push_back(std::move(op));
    }
    state.unannounced.pop_front();
    moved = true;
  }
  return moved;
}

bool PointToPoint::take_envelopes(uint32_t peer, std::vector<Completion>& finished) {
  Port& in = port(kEnvelopeChannel, peer);
  bool moved = false;
  while (in.take() != nullptr) {
    EnvelopeWire wire;
    std::memcpy(&wire, in.incoming(sizeof(wire)), sizeof(wire));
    in.consume();
    moved = true;
    Envelope envelope{peer, wire.number, wire.tag, wire.bytes, {}};
    std::memcpy(envelope.eager, wire.eager, kEagerBytes);
    const auto found = std::find_if(posted_.begin(), posted_.end(),
                                    [&](const RecvOp& op) { return matches(op, peer, wire.tag); });
    if (found == posted_.end()) {
      unexpected_.push_back(envelope);
      continue;
    }
    RecvOp op = std::move(*found);
    posted_.erase(found);
    match(std::move(op), envelope, finished);
  }
  return moved;
}

void PointToPoint::match(RecvOp op, const Envelope& envelope, std::vector<Completion>& finished) {
  op.work->set_source_rank(static_cast<int>(envelope.source));
  op.number = envelope.number;
  op.accepted = op.bytes == envelope.bytes;
  const bool eager = envelope.bytes <= kEagerBytes;
  if (!eager || op.source == kAnySource) {
    log_.start_point_to_point(op.record, static_cast<int>(envelope.source));
  }
  if (eager) {
    if (op.accepted && op.bytes > 0) std::memcpy(op.data, envelope.eager, op.bytes);
    Status status;
    if (!op.accepted) status = size_mismatch(envelope.source, envelope.bytes, rank_, op.bytes);
    finish(op, std::move(status), finished);
    return;
  }
  if (!op.accepted) {
    finish(op, size_mismatch(envelope.source, envelope.bytes, rank_, op.bytes), finished);
    ++pending_;  // the sender must still hear of it
  }
  peers_[envelope.source].matched.push_back(std::move(op));
}

bool PointToPoint::grant_receives(uint32_t peer) {
  Peer& state = peers_[peer];
  Port& out = port(kGrantChannel, peer);
  bool moved = false;
  while (!state.matched.empty() && out.can_send()) {
    RecvOp& op = state.matched.front();
    const GrantWire wire{op.bytes, op.number, op.accepted};
    std::memcpy(out.outgoing(sizeof(wire)), &wire, sizeof(wire));
    if (!out.announce(sizeof(wire))) break;
    if (op.accepted) {
      state.incoming.push_back(std::move(op));
    } else {
      --pending_;
    }
    state.matched.pop_front();
    moved = true;
  }
  return moved;
}

bool PointToPoint::take_grants(uint32_t peer, std::vector<Completion>& finished) {
  Peer& state = peers_[peer];
  Port& in = port(kGrantChannel, peer);
  bool moved = false;
  while (in.take() != nullptr) {
    GrantWire wire;
    std::memcpy(&wire, in.incoming(sizeof(wire)), sizeof(wire));
    in.consume();
    moved = true;
    const auto found = std::find_if(state.announced.begin(), state.announced.end(),
                                    [&](const SendOp& op) { return op.number == wire.number; });
    RDMACOLL_CHECK(found != state.announced.end());
    if (wire.accepted != 0) {
      log_.start_point_to_point(found->record, static_cast<int>(peer));
      state.granted.push_back(std::move(*found));
    } else {
      finish(*found, size_mismatch(rank_, found->bytes, peer, wire.bytes), finished);
    }
    state.announced.erase(found);
  }
  return moved;
}

bool PointToPoint::push_data(uint32_t peer, std::vector<Completion>& finished) {
  Peer& state = peers_[peer];
  Port& out = port(kDataChannel, peer);
  bool moved = false;
  while (!state.granted.empty() && out.can_send()) {
    SendOp& op = state.granted.front();
    const uint64_t chunk = std::min(slot_bytes_, op.bytes - op.moved);
    std::memcpy(out.outgoing(chunk), op.data + op.moved, chunk);
    if (!out.announce(chunk)) break;
    op.moved += chunk;
    moved = true;
    if (op.moved < op.bytes) continue;
    finish(op, Status(), finished);
    state.granted.pop_front();
  }
  return moved;
}

bool PointToPoint::pull_data(uint32_t peer, std::vector<Completion>& finished) {
  Peer& state = peers_[peer];
  Port& in = port(kDataChannel, peer);
  bool moved = false;
  while (!state.incoming.empty() && in.take() != nullptr) {
    RecvOp& op = state.incoming.front();
    const uint64_t chunk = std::min(slot_bytes_, op.bytes - op.moved);
    std::memcpy(op.data + op.moved, in.incoming(chunk), chunk);
    in.consume();
    op.moved += chunk;
    moved = true;
    if (op.moved < op.bytes) continue;
    finish(op, Status(), finished);
    state.incoming.pop_front();
  }
  return moved;
}

Status PointToPoint::expire(int64_t now_ns, std::vector<Completion>& finished) {
  for (auto op = posted_.begin(); op != posted_.end();) {
    if (op->deadline_ns > now_ns) {
      ++op;
      continue;
    }
    finish(*op,
           Status(StatusCode::Timeout,
                  "Timed out in " + describe(call_of(*op)) + ": nobody has sent it"),
           finished);
    op = posted_.erase(op);
  }
  for (uint32_t peer = 0; peer < peers_.size(); ++peer) {
    const Peer& state = peers_[peer];
    for (const auto* queue : {&state.unannounced, &state.announced, &state.granted}) {
      for (const SendOp& op : *queue) {
        if (op.deadline_ns > now_ns) continue;
        return Status(
            StatusCode::Timeout,
            "Timed out in " + describe(call_of(op)) + ": rank " + std::to_string(peer) +
                (queue == &state.granted ? " stopped taking the data" : " has not received it"));
      }
    }
    for (const auto* queue : {&state.matched, &state.incoming}) {
      for (const RecvOp& op : *queue) {
        if (op.deadline_ns > now_ns) continue;
        return Status(StatusCode::Timeout, "recv from rank " + std::to_string(peer) +
                                               " timed out after " + std::to_string(op.moved) +
                                               " of " + std::to_string(op.bytes) + " bytes");
      }
    }
  }
  return Status();
}

std::optional<MessageCall> PointToPoint::oldest() const {
  for (const Peer& state : peers_) {
    for (const auto* queue : {&state.incoming, &state.matched}) {
      if (!queue->empty()) return call_of(queue->front());
    }
    for (const auto* queue : {&state.granted, &state.announced, &state.unannounced}) {
      if (!queue->empty()) return call_of(queue->front());
    }
  }
  if (!posted_.empty()) return call_of(posted_.front());
  return std::nullopt;
}

bool PointToPoint::needs(uint32_t peer) const {
  const Peer& state = peers_[peer];
  if (!state.unannounced.empty() || !state.announced.empty() || !state.granted.empty() ||
      !state.matched.empty() || !state.incoming.empty()) {
    return true;
  }
  return std::any_of(posted_.begin(), posted_.end(), [&](const RecvOp& op) {
    return op.source != kAnySource && static_cast<uint32_t>(op.source) == peer;
  });
}

void PointToPoint::fail_all(const Status& status, std::vector<Completion>& finished) {
  for (Peer& state : peers_) {
    for (auto* queue : {&state.unannounced, &state.announced, &state.granted}) {
      for (const SendOp& op : *queue) finish(op, status, finished);
      queue->clear();
    }
    for (const RecvOp& op : state.matched) {
      if (op.accepted) {
        finish(op, status, finished);
      } else {
        --pending_;
      }
    }
    for (const RecvOp& op : state.incoming) finish(op, status, finished);
    state.matched.clear();
    state.incoming.clear();
  }
  for (const RecvOp& op : posted_) finish(op, status, finished);
  posted_.clear();
  RDMACOLL_CHECK(pending_ == 0);
}

template <typename Op>
void PointToPoint::finish(const Op& op, Status status, std::vector<Completion>& finished) {
  --pending_;
  log_.end_point_to_point(op.record, status.ok());
  finished.push_back({op.work, std::move(status)});
}

}  // namespace rdmacoll
