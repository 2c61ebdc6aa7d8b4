// PointToPoint: what this rank sends to itself. Floor: engine/p2p. Thread: the driver.
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/engine/p2p/p2p.h"

namespace rdmacoll {

void PointToPoint::send_to_self(SendOp op, std::vector<Completion>& finished) {
  Peer& self = *find(rank_);
  op.number = self.envelopes++;
  Envelope envelope{.source = rank_, .number = op.number, .tag = op.tag, .bytes = op.bytes};
  const size_t found =
      posted_.find([&](const RecvOp& recv) { return recv.matches(rank_, op.tag); });
  if (found == posted_.size() && keep(op, envelope)) {
    unexpected_.push(envelope);
    return finish(op, Status(), finished);
  }
  self.announced.push(std::move(op));
  if (found == posted_.size()) {
    unexpected_.push(envelope);
  } else {
    match(posted_.take_out(found), envelope, finished);
  }
}

// Keeps a short message aside, if there is room; whether it did.
bool PointToPoint::keep(const SendOp& op, Envelope& envelope) {
  if (op.bytes > eager_bytes_) return false;
  if (op.bytes <= kEnvelopeBytes) {
    envelope.protocol = Protocol::Inline;
    if (op.bytes > 0) std::memcpy(envelope.data, op.data, op.bytes);
    return true;
  }
  if (kept_.size() == kSlotDepth) return false;
  envelope.protocol = Protocol::Eager;
  kept_.push({op.number, {op.data, op.data + op.bytes}});
  return true;
}

void PointToPoint::take_from_self(const RecvOp& op, const Envelope& envelope,
                                  std::vector<Completion>& finished) {
  const auto is_it = [&](const auto& sent) { return sent.number == envelope.number; };
  Status status;
  if (!op.fits()) status = size_mismatch(rank_, op.sent_bytes, rank_, op.bytes);
  const std::byte* data = envelope.data;
  Kept kept;
  SendOp send;
  if (envelope.protocol == Protocol::Eager) {
    kept = kept_.take_out(kept_.find(is_it));
    data = kept.bytes.data();
  } else if (envelope.protocol == Protocol::Rendezvous) {
    Fifo<SendOp>& announced = find(rank_)->announced;
    send = announced.take_out(announced.find(is_it));
    log_.start_point_to_point(send.record, static_cast<int>(rank_));
    data = send.data;
  }
  // Both may be the same buffer, or overlap.
  if (op.fits() && op.bytes > 0) std::memmove(op.data, data, op.bytes);
  if (envelope.protocol == Protocol::Rendezvous) finish(send, status, finished);
  finish(op, std::move(status), finished);
}

template <typename IsIt, typename Why>
void PointToPoint::drop_own(IsIt is_it, Why why, std::vector<Completion>& finished) {
  Fifo<SendOp>& announced = find(rank_)->announced;
  for (size_t found; (found = announced.find(is_it)) < announced.size();) {
    const SendOp op = announced.take_out(found);
    static_cast<void>(unexpected_.take_out(unexpected_.find(
        [&](const Envelope& sent) { return sent.source == rank_ && sent.number == op.number; })));
    finish(op, why(describe(op.call())), finished);
  }
}

void PointToPoint::withdraw_own(std::vector<Completion>& finished) {
  drop_own([](const SendOp& op) { return op.work->is_waited_for(); },
           [](const std::string& send) {
             return Status(StatusCode::InvalidArgument,
                           send +
                               " is to this rank itself and would never end: it waits for a "
                               "receive; post that (irecv) before waiting for the send");
           },
           finished);
}

// No peer knows of these sends, so the group lives on.
void PointToPoint::expire_own(int64_t now_ns, std::vector<Completion>& finished) {
  drop_own([&](const SendOp& op) { return op.deadline_ns <= now_ns; },
           [](const std::string& send) {
             return Status(StatusCode::Timeout,
                           "Timed out in " + send + ": this rank itself has not received it");
           },
           finished);
}

void PointToPoint::fail_own(const Status& status, std::vector<Completion>& finished) {
  drop_own([](const SendOp&) { return true; }, [&](const std::string&) { return status; },
           finished);
}

}  // namespace rdmacoll
