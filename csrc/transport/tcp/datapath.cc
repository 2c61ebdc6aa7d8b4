// TcpTransport: put, get, signal, and what leaves. No lock, no allocation.
// Floor: transport/tcp. Thread: the driver.
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/transport/tcp/transport.h"

namespace rdmacoll {

using tcp::FrameHead;
using tcp::FrameKind;
using tcp::OwnRegion;
using tcp::SendQueue;
using tcp::Stream;

namespace {

// Puts of so many bytes and more are cut over all streams, into parts that begin on whole pages.
constexpr uint64_t kStripeBytes = 256 * 1024;
constexpr uint64_t kStripeAlignment = 4096;
// What one frame carries at most.
constexpr uint64_t kMostPayloadBytes = 1u << 30;

// How a put is cut: so many parts, each but the last of so many bytes.
struct Cut {
  uint64_t parts;
  uint64_t part_bytes;

  Cut(uint64_t bytes, uint64_t streams) {
    const uint64_t stripes = bytes >= kStripeBytes ? streams : 1;
    part_bytes = std::min(bytes, kMostPayloadBytes);
    if (stripes > 1) {
      const uint64_t even = (bytes + stripes - 1) / stripes + kStripeAlignment - 1;
      part_bytes = std::min(even / kStripeAlignment * kStripeAlignment, kMostPayloadBytes);
    }
    parts = (bytes + part_bytes - 1) / part_bytes;
  }
};

}  // namespace

TcpTransport::Peer& TcpTransport::peer_at(PeerId id) const {
  Peer* peer = peers_.at(id);
  RDMACOLL_CHECK(peer != nullptr);
  return *peer;
}

const OpenedRegion& TcpTransport::opened(const Peer& peer, RegionId region) const {
  const OpenedRegion* open = peer.regions.at(region);
  RDMACOLL_CHECK(open != nullptr);
  return *open;
}

// --- posting -------------------------------------------------------------------------------------

bool TcpTransport::has_room(const Peer& peer, uint64_t bytes) const {
  const Cut cut(bytes, peer.streams.size());
  const uint64_t each = (cut.parts + peer.streams.size() - 1) / peer.streams.size();
  return std::all_of(peer.streams.begin(), peer.streams.end(), [&](const auto& stream) {
    return stream->out.has_room(static_cast<uint32_t>(each));
  });
}

Posted TcpTransport::put(PeerId id, uint8_t, LocalSlice source, RemoteSlice destination,
                         Ticket* ticket) {
  Peer& peer = peer_at(id);
  const FrameHead head = head_of_put(peer, destination);
  RDMACOLL_CHECK(source.bytes == destination.bytes);
  if (!peer.alive() || source.bytes == 0) return Posted::Done;
  if (peer.is_self) {
    std::memcpy(regions_.at(destination.region)->base + destination.offset, source.data,
                source.bytes);
    return Posted::Done;
  }
  if (!has_room(peer, source.bytes)) return Posted::Full;
  push_put(peer, source, head);
  to_write(peer);
  *ticket = peer.sends.newest();
  return Posted::Pending;
}

// Without bytes, into what is open and holds them.
FrameHead TcpTransport::head_of_put(const Peer& peer, const RemoteSlice& destination) const {
  FrameHead head{
      .kind = FrameKind::Put, .region = destination.region, .offset = destination.offset};
  if (tcp::is_placement(destination.region)) {
    const auto& lent = peer.placements[destination.region - tcp::kFirstPlacement];
    RDMACOLL_CHECK(lent.holds(destination.offset, destination.bytes));
    head.number = lent.use;
  } else {
    const OpenedRegion& region = opened(peer, destination.region);
    RDMACOLL_CHECK(region.holds(destination.offset, destination.bytes));
    head.generation = static_cast<uint16_t>(region.generation);
  }
  return head;
}

void TcpTransport::push_put(Peer& peer, const LocalSlice& source, FrameHead head) {
  const Cut cut(source.bytes, peer.streams.size());
  ++peer.sends.posted;
  for (uint64_t part = 0, offset = 0; part < cut.parts; ++part, offset += cut.part_bytes) {
    const size_t at = part % peer.streams.size();
    Stream& stream = *peer.streams[at];
    const uint64_t bytes = std::min(cut.part_bytes, source.bytes - offset);
    stream.out.push_payload(head, source.data + offset, static_cast<uint32_t>(bytes),
                            peer.sends.posted);
    head.offset += bytes;
    ++stream.puts_out;
    if (at > 0) peer.marks_due = true;
  }
}

Posted TcpTransport::get(PeerId id, uint8_t, RemoteSlice source, LocalSlice destination,
                         Ticket* ticket) {
  Peer& peer = peer_at(id);
  const OpenedRegion& region = opened(peer, source.region);
  RDMACOLL_CHECK(source.bytes == destination.bytes && region.holds(source.offset, source.bytes) &&
                 source.bytes <= kMostPayloadBytes);
  if (!peer.alive() || source.bytes == 0) return Posted::Done;
  if (peer.is_self) {
    std::memcpy(destination.data, regions_.at(source.region)->base + source.offset, source.bytes);
    return Posted::Done;
  }
  const tcp::GetBody body{static_cast<uint32_t>(source.bytes)};
  const FrameHead head{.kind = FrameKind::Get,
                       .generation = static_cast<uint16_t>(region.generation),
                       .region = source.region,
                       .offset = source.offset};
  const bool is_alone = peer.gets.are_answered();
  if (!ask(peer, head, &body, sizeof(body), destination, ticket)) return Posted::Full;
  // Behind others it waits for more, until they fill a call or poll() comes. That is due for the
  // answers to those, so nobody sleeps over it.
  if (is_alone || peer.streams[0]->out.fills_a_call()) {
    write(peer);
  } else {
    to_write(peer);
  }
  return Posted::Pending;
}

// Its answer goes to that place. False: there is no room now.
bool TcpTransport::ask(Peer& peer, FrameHead head, const void* body, size_t bytes,
                       const LocalSlice& place, Ticket* ticket) {
  if (peer.gets.is_full() || !peer.streams[0]->out.has_room(2)) return false;
  const uint64_t number = ++peer.gets.transfers.posted;
  peer.gets.place(number) = place;
  head.number = static_cast<uint32_t>(number);
  push_control(peer, head, body, bytes);
  *ticket = peer.gets.transfers.newest();
  return true;
}

Posted TcpTransport::update(PeerId id, uint8_t, RemoteSlice word, const Update& update,
                            LocalSlice before, Ticket* ticket) {
  Peer& peer = peer_at(id);
  const OpenedRegion& region = opened(peer, word.region);
  RDMACOLL_CHECK(word.bytes == kWordBytes && before.bytes == kWordBytes);
  RDMACOLL_CHECK(word.offset % kWordBytes == 0 && region.holds(word.offset, kWordBytes));
  if (!peer.alive()) return Posted::Done;
  if (peer.is_self) {
    const uint64_t was = update.apply_to(regions_.at(word.region)->base + word.offset);
    std::memcpy(before.data, &was, sizeof(was));
    return Posted::Done;
  }
  const tcp::UpdateBody body{update.operand, update.expected, static_cast<uint64_t>(update.kind)};
  const FrameHead head{.kind = FrameKind::Update,
                       .generation = static_cast<uint16_t>(region.generation),
                       .region = word.region,
                       .offset = word.offset};
  if (!ask(peer, head, &body, sizeof(body), before, ticket)) return Posted::Full;
  write(peer);
  return Posted::Pending;
}

Posted TcpTransport::signal(PeerId id, uint8_t, RemoteSlice line, uint64_t counter,
                            const Header& header) {
  Peer& peer = peer_at(id);
  const OpenedRegion& region = opened(peer, line.region);
  RDMACOLL_CHECK(line.offset % kLineBytes == 0 && region.holds(line.offset, kLineBytes));
  RDMACOLL_CHECK(header.inline_bytes <= kInlineBytes);
  if (!peer.alive()) return Posted::Done;
  if (peer.is_self) {
    store_line(line, counter, header);
    return Posted::Done;
  }
  if (!peer.streams[0]->out.has_room(2)) return Posted::Full;
  tcp::SignalBody body;
  body.counter = counter;
  body.signature = header.signature;
  body.length_and_sequence = header.length_and_sequence;
  body.credit = header.credit;
  body.reserved = 0;
  std::memcpy(body.inline_data, header.inline_data, header.inline_bytes);
  push_control(peer,
               FrameHead{.kind = FrameKind::Signal,
                         .generation = static_cast<uint16_t>(region.generation),
                         .region = line.region,
                         .offset = line.offset},
               &body, tcp::kSignalHeadBytes + header.inline_bytes);
  write(peer);
  return Posted::Done;
}

// Over the first stream, which has room for two frames; behind all puts.
void TcpTransport::push_control(Peer& peer, const FrameHead& head, const void* body, size_t bytes) {
  SendQueue& out = peer.streams[0]->out;
  if (peer.marks_due) {
    peer.marks_due = false;
    tcp::MarkBody mark{};
    for (size_t i = 1; i < peer.streams.size(); ++i) mark.puts[i - 1] = peer.streams[i]->puts_out;
    out.push_body(FrameHead{.kind = FrameKind::Mark}, &mark, sizeof(mark));
  }
  out.push_body(head, body, bytes);
}

// Into my own memory: what a signal leaves.
void TcpTransport::store_line(const RemoteSlice& slice, uint64_t counter, const Header& header) {
  store(*reinterpret_cast<Line*>(regions_.at(slice.region)->base + slice.offset), counter, header);
}

// --- writing -------------------------------------------------------------------------------------

void TcpTransport::to_write(Peer& peer) {
  if (peer.is_unsent) return;
  peer.is_unsent = true;
  unsent_.push_back(&peer);
}

// Gives the sockets what they take now.
void TcpTransport::write(Peer& peer) {
  for (size_t i = 0; i < peer.streams.size() && peer.alive(); ++i) {
    if (!peer.streams[i]->is_full) write_stream(peer, i);
  }
}

void TcpTransport::write_stream(Peer& peer, size_t at) {
  Stream& stream = *peer.streams[at];
  if (stream.out.empty() && !stream.is_full) return;
  const SendQueue::Wrote wrote = stream.out.write(stream.fd.get());
  // What came before the other side has ended is still to be read; then the end is.
  const bool ended = errno == EPIPE || errno == ECONNRESET;
  if (wrote == SendQueue::Wrote::Failed && !ended) return lose_at_end(peer, errno);
  peer.note_written();
  stream.is_full = wrote != SendQueue::Wrote::All;
  watch(peer, at);
}

// What waits for another stream is not read, and so must not wake anybody.
void TcpTransport::watch(Peer& peer, size_t at) {
  Stream& stream = *peer.streams[at];
  const uint32_t wanted = (stream.in.waits() ? 0u : uint32_t{EPOLLIN | EPOLLRDHUP}) |
                          (stream.is_full ? uint32_t{EPOLLOUT} : 0u);
  if (wanted == stream.watched || stream.has_ended) return;
  stream.watched = wanted;
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = tcp::EventTag{peer.id, static_cast<uint32_t>(at)}.pack();
  ::epoll_ctl(data_set_.get(), EPOLL_CTL_MOD, stream.fd.get(), &event);
}

void TcpTransport::poll() {
  take_events();
  // Answers to gets that have just come among them: who attends polls once only.
  for (Peer* peer : unsent_) {
    peer->is_unsent = false;
    if (peer->alive()) write(*peer);
  }
  unsent_.clear();
  if (errands_.is_time_to_look() || has_time_passed()) run_errands();
}

}  // namespace rdmacoll
