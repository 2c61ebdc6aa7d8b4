// PointToPoint: the bytes of messages that have been cleared. Floor: engine/p2p. Thread: the
// driver.
//
// A message that its receiver has lent its tensor for goes there in large chunks, each a put out of
// the sender's tensor and a line; nothing is copied here, but for a last chunk so small that it
// goes in its line. So the chunks, and not the slots, bound what may be under way on a long line.
//
// A large message of the sender's heap is read there by a receiver that maps it: one copy, and none
// of the sender's, instead of two side by side. To one that does not map it, the device takes it
// from there to the slots.
//
// Either send ends when nobody reads the tensor any more.
#include <algorithm>

#include "csrc/engine/p2p/p2p.h"
#include "csrc/memory/copy.h"

namespace rdmacoll {
namespace {

// Eight of them are under way: what a line of 25 Gbit/s has in 10 ms. A heartbeat that the peer
// asks for waits behind them.
constexpr uint64_t kPlacedChunkBytes = 4u << 20;

// What the receiver copies before it looks after others again: about 0.1 ms.
constexpr uint64_t kMappedChunkBytes = 1u << 20;

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
    if (!may_be_written(op, peer)) break;
    store_choice_.end(op.stores);
    finish(op, Status(), finished);
    static_cast<void>(peer.cleared.pop());
    moved = true;
  }
  return moved;
}

// Whether nobody reads what was pushed of it any more.
bool PointToPoint::may_be_written(const SendOp& op, const Peer& peer) const {
  const Port& out = port(kDataChannel, peer);
  if (!op.is_zero_copy || !out.is_mapped()) return !is_sending_to(peer);
  return out.has_them_back();
}

bool PointToPoint::may_be_zero_copy(const SendOp& op, const Port& out) const {
  if (heap_ == nullptr) return false;
  if (!out.is_mapped()) {
    return op.bytes >= zero_copy_remote_bytes_ && heap_->part_of(op.data, op.bytes).has_value();
  }
  return op.bytes >= zero_copy_local_bytes_ && out.link().maps_mine &&
         heap_->holds(op.data, op.bytes);
}

// nullopt: it goes through a slot, or in its line.
std::optional<ZeroCopySource> PointToPoint::zero_copy_source(const SendOp& op, const Port& out,
                                                             uint64_t chunk) const {
  if (chunk <= kInlineBytes || (!op.is_placed() && !op.is_zero_copy)) return std::nullopt;
  const std::byte* const from = op.data + op.moved;
  RegionId region = kNoRegion;  // where the transport reads any memory
  if (op.is_zero_copy && !out.is_mapped()) region = heap_->part_of(from, chunk)->region;
  return ZeroCopySource{
      .slice = {const_cast<std::byte*>(from), chunk, region},  // put() only reads it
      .offset = op.is_zero_copy ? static_cast<uint64_t>(from - heap_->base()) : 0};
}

// False: the transport is full, come again with the same chunk.
bool PointToPoint::push_chunk(SendOp& op, Port& out) {
  const std::byte* from = op.data + op.moved;
  uint64_t most = slot_bytes_;
  if (op.is_placed()) most = kPlacedChunkBytes;
  if (op.is_zero_copy && out.is_mapped()) most = kMappedChunkBytes;
  const uint64_t chunk = std::min(most, op.bytes - op.moved);
  const auto length = static_cast<uint32_t>(chunk);
  if (const auto source = zero_copy_source(op, out, chunk)) {
    const RemoteSlice place{op.placed.id, op.moved, chunk};
    if (!out.announce(0, chunk, length, &*source, op.is_placed() ? &place : nullptr)) return false;
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
    RecvOp& op = peer.incoming.front();
    if (op.moved < op.bytes) {
      if (!pull_chunk(op, peer)) break;
      moved = true;
      continue;
    }
    if (!in.has_given_back()) break;  // the sender waits for it
    end_placement(op, peer.rank);
    finish(op, Status(), finished);
    static_cast<void>(peer.incoming.pop());
    moved = true;
  }
  return moved;
}

// False: nothing has come, or what has is not good.
bool PointToPoint::pull_chunk(RecvOp& op, const Peer& peer) {
  Port& in = port(kDataChannel, peer);
  const Line* line = in.take();
  if (line == nullptr) return false;
  uint64_t chunk = std::min<uint64_t>(line->length_and_sequence, op.bytes - op.moved);
  const bool is_zero_copy = in.is_zero_copy(chunk);
  if (!in.is_placed(chunk)) {
    if (!is_zero_copy) chunk = std::min(chunk, slot_bytes_);
    const std::byte* from = is_zero_copy ? in.in_source(0, chunk) : in.incoming(chunk);
    const Stores stores = op.bytes >= kStreamBytes ? Stores::Streamed : Stores::Cached;
    copy_bytes(op.data + op.moved, from, chunk, stores);
  }
  // Its user may have written there since: this receive fails with the group.
  if (is_zero_copy && links_.has_given_up(peer.rank)) return false;
  in.consume(is_zero_copy);
  op.moved += chunk;
  return true;
}

void PointToPoint::end_placement(const RecvOp& op, uint32_t sender) {
  if (!op.placement.is_given()) return;
  links_.at(sender)->link.transport->end_placement(op.placement);
}

bool PointToPoint::is_read_by_device(const SendOp& op, const Peer& peer) {
  return op.is_placed() || (op.is_zero_copy && !port(kDataChannel, peer).is_mapped());
}

// The message at the front, of which all or some has been handed to the transport.
bool PointToPoint::is_sending_to(const Peer& peer) const {
  return !peer.cleared.empty() && is_read_by_device(peer.cleared.front(), peer) &&
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
