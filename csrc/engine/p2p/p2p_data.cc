// PointToPoint: the bytes of messages that have been cleared. Floor: engine/p2p. Thread: the
// driver.
//
// A message that its receiver has lent its tensor for goes there in large chunks, each a put out of
// the sender's tensor and a line; nothing is copied here, but for a last chunk so small that it
// goes in its line. So the chunks, and not the slots, bound what may be under way on a long line.
// Its send ends when the transport reads the tensor no more.
#include <algorithm>

#include "csrc/engine/p2p/p2p.h"
#include "csrc/memory/copy.h"

namespace rdmacoll {
namespace {

// Eight of them are under way: what a line of 25 Gbit/s has in 10 ms. A heartbeat that the peer
// asks for waits behind them.
constexpr uint64_t kPlacedChunkBytes = 4u << 20;

}  // namespace

bool PointToPoint::push_data(Peer& peer, std::vector<Completion>& finished) {
  Port& out = port(kDataChannel, peer);
  bool moved = false;
  while (!peer.cleared.empty()) {
    SendOp& op = peer.cleared.front();
    if (op.moved < op.bytes) {
      if (!out.can_send() || !push_chunk(op, out)) break;
      moved = true;
      continue;
    }
    if (is_sending_to(peer)) break;
    store_choice_.end(op.stores);
    finish(op, Status(), finished);
    static_cast<void>(peer.cleared.pop());
    moved = true;
  }
  return moved;
}

// False: the transport is full, come again with the same chunk.
bool PointToPoint::push_chunk(SendOp& op, Port& out) {
  const std::byte* from = op.data + op.moved;
  const uint64_t most = op.is_placed() ? kPlacedChunkBytes : slot_bytes_;
  const uint64_t chunk = std::min(most, op.bytes - op.moved);
  if (op.is_placed() && chunk > kInlineBytes) {
    // put() only reads it.
    const ZeroCopySource source{.slice = {const_cast<std::byte*>(from), chunk, kNoRegion}};
    const RemoteSlice place{op.placed.id, op.moved, chunk};
    if (!out.announce(0, chunk, static_cast<uint32_t>(chunk), &source, &place)) return false;
  } else {
    std::byte* to = out.outgoing(chunk);
    store_choice_.time(op.stores, [&] { copy_bytes(to, from, chunk, op.stores.stores); });
    if (!out.announce(chunk)) return false;
  }
  op.moved += chunk;
  return true;
}

bool PointToPoint::pull_data(Peer& peer, std::vector<Completion>& finished) {
  Port& in = port(kDataChannel, peer);
  bool moved = false;
  while (!peer.incoming.empty()) {
    const Line* line = in.take();
    if (line == nullptr) break;
    RecvOp& op = peer.incoming.front();
    uint64_t chunk = std::min<uint64_t>(line->length_and_sequence, op.bytes - op.moved);
    if (!in.is_placed(chunk)) {
      chunk = std::min(chunk, slot_bytes_);
      const Stores stores = op.bytes >= kStreamBytes ? Stores::Streamed : Stores::Cached;
      copy_bytes(op.data + op.moved, in.incoming(chunk), chunk, stores);
    }
    in.consume();
    op.moved += chunk;
    moved = true;
    if (op.moved < op.bytes) continue;
    end_placement(op, peer.rank);
    finish(op, Status(), finished);
    static_cast<void>(peer.incoming.pop());
  }
  return moved;
}

void PointToPoint::end_placement(const RecvOp& op, uint32_t sender) {
  if (!op.placement.is_given()) return;
  links_.at(sender)->link.transport->end_placement(op.placement);
}

// The message at the front, of which all or some has been handed to the transport.
bool PointToPoint::is_sending_to(const Peer& peer) const {
  return !peer.cleared.empty() && peer.cleared.front().is_placed() &&
         !port(kDataChannel, peer).puts_done();
}

bool PointToPoint::is_sending_to(uint32_t peer) const {
  const Peer* known = find(peer);
  return known != nullptr && is_sending_to(*known);
}

bool PointToPoint::is_sending() const {
  return std::any_of(known_.begin(), known_.end(),
                     [&](const auto& peer) { return is_sending_to(*peer); });
}

}  // namespace rdmacoll
