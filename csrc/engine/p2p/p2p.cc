// PointToPoint: matching and clear-to-send. Floor: engine/p2p. Thread: the driver.
#include "csrc/engine/p2p/p2p.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/base/limits.h"

namespace rdmacoll {
namespace {

// What the inline data of an envelope and of a clear-to-send hold.
struct EnvelopeWire {
  uint64_t bytes;
  uint32_t number;
  int32_t tag;
  std::byte data[kEnvelopeBytes];  // of a larger message the first says whether it is beside
};
struct ClearToSendWire {
  uint64_t bytes;  // that the receiver has room for; data follow only if the sender's are as many
  uint32_t number;
  uint32_t accepted;
  std::array<char, kShortKeyBytes> key;  // of what is lent for it; zeros: data go through slots
};
static_assert(sizeof(EnvelopeWire) <= kInlineBytes && sizeof(ClearToSendWire) <= kInlineBytes);
constexpr std::byte kIsEager{1};

// Of less, two copies side by side on two cores end before one.
constexpr uint64_t kZeroCopyLocalBytes = 1u << 20;

}  // namespace

Status size_mismatch(uint32_t sender, uint64_t sent, uint32_t receiver, uint64_t room) {
  return Status(StatusCode::Mismatch,
                "rank " + std::to_string(sender) + " sends " + std::to_string(sent) +
                    " bytes but rank " + std::to_string(receiver) + " receives " +
                    std::to_string(room) + "; send and recv need tensors of equal size and dtype");
}

bool RecvOp::matches(uint32_t from, int32_t with_tag) const {
  return (source == kAnySource || static_cast<uint32_t>(source) == from) && tag == with_tag;
}

PointToPoint::PointToPoint(PeerLinks& links, const Heap* heap, const Config& config,
                           const Clock& clock, FlightLog& log)
    : links_(links),
      heap_(heap),
      rank_(links.rank()),
      slot_bytes_(links.layout().slot_bytes()),
      eager_bytes_(links.layout().slot_bytes(kEagerChannel)),
      zero_copy_local_bytes_(
          std::min(static_cast<uint64_t>(config.zero_copy_local_bytes), kZeroCopyLocalBytes)),
      zero_copy_remote_bytes_(static_cast<uint64_t>(config.zero_copy_remote_bytes)),
      store_choice_(config.stores, clock),
      log_(log) {
  state_of(rank_);
}

PointToPoint::Peer* PointToPoint::find(uint32_t rank) const {
  const auto found = std::ranges::lower_bound(known_, rank, {}, &rank_of);
  return found != known_.end() && (*found)->rank == rank ? found->get() : nullptr;
}

PointToPoint::Peer& PointToPoint::state_of(uint32_t peer) {
  if (Peer* known = find(peer); known != nullptr) return *known;
  const auto behind = std::ranges::lower_bound(known_, peer, {}, &rank_of);
  Peer& state = **known_.insert(behind, std::make_unique<Peer>(peer));
  links_.want(peer);
  return state;
}

void PointToPoint::note_met(uint32_t rank) {
  Peer& state = state_of(rank);
  if (state.met != nullptr) return;
  state.met = links_.at(rank);
  state.inbox.emplace(port(kEagerChannel, state));
}

void PointToPoint::send(SendOp op, std::vector<Completion>& finished) {
  ++pending_;
  op.record =
      log_.point_to_point(kFlightSend, op.bytes, static_cast<int>(op.peer), op.tag, op.started_ns);
  if (op.peer == rank_) return send_to_self(std::move(op), finished);
  state_of(op.peer).unannounced.push(std::move(op));
}

void PointToPoint::recv(RecvOp op, std::vector<Completion>& finished) {
  ++pending_;
  op.record = log_.point_to_point(kFlightRecv, op.bytes, op.source, op.tag, op.started_ns);
  if (op.source != kAnySource) state_of(static_cast<uint32_t>(op.source));
  const size_t found =
      unexpected_.find([&](const Envelope& e) { return op.matches(e.source, e.tag); });
  if (found == unexpected_.size()) {
    posted_.push(std::move(op));
  } else {
    match(std::move(op), unexpected_.take_out(found), finished);
  }
}

bool PointToPoint::advance(std::vector<Completion>& finished) {
  bool moved = false;
  for (const auto& peer : known_) {
    if (peer->met == nullptr) continue;
    moved |= pull_data(*peer, finished);
    moved |= take_clearances(*peer, finished);
    moved |= push_data(*peer, finished);
    moved |= take_expected(*peer, finished);
    moved |= take_envelopes(*peer, finished);
    moved |= clear_receives(*peer);
    moved |= announce_sends(*peer, finished);
  }
  return moved;
}

bool PointToPoint::announce_sends(Peer& peer, std::vector<Completion>& finished) {
  Port& out = port(kEnvelopeChannel, peer);
  bool moved = false;
  while (!peer.unannounced.empty() && out.can_send()) {
    SendOp& op = peer.unannounced.front();
    if (!choose_way(peer, op)) break;
    EnvelopeWire wire{op.bytes, peer.envelopes, op.tag, {}};
    if (op.protocol == Protocol::Eager) wire.data[0] = kIsEager;
    if (op.protocol == Protocol::Inline && op.bytes > 0) std::memcpy(wire.data, op.data, op.bytes);
    std::memcpy(out.outgoing(sizeof(wire)), &wire, sizeof(wire));
    if (!out.announce(sizeof(wire))) break;
    op.number = peer.envelopes++;
    if (op.protocol == Protocol::Rendezvous) {
      peer.announced.push(peer.unannounced.pop());
    } else {
      finish(op, Status(), finished);
      static_cast<void>(peer.unannounced.pop());
    }
    moved = true;
  }
  return moved;
}

// Puts the bytes beside the envelope where they fit and a slot is free. False: the transport is
// full, come again with the same message.
bool PointToPoint::choose_way(const Peer& peer, SendOp& op) {
  if (op.bytes <= kEnvelopeBytes) op.protocol = Protocol::Inline;
  if (op.protocol != Protocol::Rendezvous || op.bytes > eager_bytes_) return true;
  Port& out = port(kEagerChannel, peer);
  if (!op.in_slot) {
    if (!out.can_send()) return true;
    std::memcpy(out.outgoing(op.bytes), op.data, op.bytes);
    op.in_slot = true;
  }
  if (!out.announce(op.bytes)) return false;
  op.protocol = Protocol::Eager;
  return true;
}

bool PointToPoint::take_envelopes(Peer& peer, std::vector<Completion>& finished) {
  Port& in = port(kEnvelopeChannel, peer);
  bool moved = false;
  while (in.take() != nullptr) {
    EnvelopeWire wire;
    std::memcpy(&wire, in.incoming(sizeof(wire)), sizeof(wire));
    in.consume();
    moved = true;
    Envelope envelope{
        .source = peer.rank, .number = wire.number, .tag = wire.tag, .bytes = wire.bytes};
    if (wire.bytes <= kEnvelopeBytes) {
      envelope.protocol = Protocol::Inline;
      std::memcpy(envelope.data, wire.data, kEnvelopeBytes);
    } else if (wire.bytes <= eager_bytes_ && wire.data[0] == kIsEager) {
      envelope.protocol = Protocol::Eager;
      envelope.eager = peer.inbox->expect();
    }
    const size_t found =
        posted_.find([&](const RecvOp& op) { return op.matches(peer.rank, wire.tag); });
    if (found == posted_.size()) {
      unexpected_.push(envelope);
    } else {
      match(posted_.take_out(found), envelope, finished);
    }
  }
  return moved;
}

void PointToPoint::match(RecvOp op, const Envelope& envelope, std::vector<Completion>& finished) {
  op.work->set_source_rank(static_cast<int>(envelope.source));
  op.number = envelope.number;
  op.sent_bytes = envelope.bytes;
  op.eager = envelope.eager;
  if (envelope.protocol == Protocol::Rendezvous || op.source == kAnySource) {
    log_.start_point_to_point(op.record, static_cast<int>(envelope.source));
  }
  if (envelope.source == rank_) return take_from_self(op, envelope, finished);
  Peer& peer = *find(envelope.source);
  if (envelope.protocol == Protocol::Eager) {
    if (!take_eager(peer, op, finished)) peer.expected.push(std::move(op));
    return;
  }
  if (envelope.protocol == Protocol::Inline && op.fits()) {
    if (op.bytes > 0) std::memcpy(op.data, envelope.data, op.bytes);
    finish(op, Status(), finished);
    return;
  }
  if (!op.fits()) {
    finish(op, size_mismatch(envelope.source, op.sent_bytes, rank_, op.bytes), finished);
    if (envelope.protocol == Protocol::Inline) return;
    ++pending_;  // the sender must still hear of it
  }
  peer.matched.push(std::move(op));
}

bool PointToPoint::take_expected(Peer& peer, std::vector<Completion>& finished) {
  Fifo<RecvOp>& expected = peer.expected;
  bool moved = false;
  for (size_t i = 0; i < expected.size();) {
    if (take_eager(peer, expected[i], finished)) {
      static_cast<void>(expected.take_out(i));
      moved = true;
    } else {
      ++i;
    }
  }
  return moved;
}

// False: the bytes are not here yet.
bool PointToPoint::take_eager(Peer& peer, const RecvOp& op, std::vector<Completion>& finished) {
  EagerInbox& inbox = *peer.inbox;
  const std::byte* data = inbox.look(op.eager);
  if (data == nullptr) return false;
  if (op.fits()) std::memcpy(op.data, data, op.bytes);
  inbox.release(op.eager);
  Status status;
  if (!op.fits()) status = size_mismatch(peer.rank, op.sent_bytes, rank_, op.bytes);
  finish(op, std::move(status), finished);
  return true;
}

bool PointToPoint::clear_receives(Peer& peer) {
  Port& out = port(kClearToSendChannel, peer);
  bool moved = false;
  while (!peer.matched.empty() && out.can_send()) {
    RecvOp& op = peer.matched.front();
    if (op.fits() && !op.placement.is_given()) {
      op.placement = out.link().transport->begin_placement(out.link().peer, op.data, op.bytes);
    }
    const ClearToSendWire wire{op.bytes, op.number, op.fits(), op.placement.key};
    std::memcpy(out.outgoing(sizeof(wire)), &wire, sizeof(wire));
    if (!out.announce(sizeof(wire))) break;
    if (op.fits()) {
      peer.incoming.push(peer.matched.pop());
    } else {
      --pending_;
      static_cast<void>(peer.matched.pop());
    }
    moved = true;
  }
  return moved;
}

bool PointToPoint::take_clearances(Peer& peer, std::vector<Completion>& finished) {
  Port& in = port(kClearToSendChannel, peer);
  bool moved = false;
  while (in.take() != nullptr) {
    ClearToSendWire wire;
    std::memcpy(&wire, in.incoming(sizeof(wire)), sizeof(wire));
    in.consume();
    moved = true;
    SendOp op = peer.announced.take_out(
        peer.announced.find([&](const SendOp& sent) { return sent.number == wire.number; }));
    if (wire.accepted != 0) {
      log_.start_point_to_point(op.record, static_cast<int>(peer.rank));
      op.placed = in.open_placement(wire.key, op.bytes);
      op.is_zero_copy = !op.is_placed() && may_be_zero_copy(op, port(kDataChannel, peer));
      const bool is_copied = in.is_mapped() && !op.is_zero_copy;
      if (is_copied) op.stores = store_choice_.begin_message(op.bytes);
      peer.cleared.push(std::move(op));
    } else {
      finish(op, size_mismatch(rank_, op.bytes, peer.rank, wire.bytes), finished);
    }
  }
  return moved;
}

}  // namespace rdmacoll
