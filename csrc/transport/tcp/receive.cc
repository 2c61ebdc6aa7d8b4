// TcpTransport: what comes. Nothing of it is trusted: a peer that breaks the protocol is lost, and
// nothing else. Floor: transport/tcp. Thread: the driver.
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/transport/tcp/transport.h"

namespace rdmacoll {

using tcp::FrameHead;
using tcp::FrameKind;
using tcp::FrameReader;
using tcp::OwnRegion;
using tcp::Stream;

namespace {

// In one poll, of one connection: others come to their turn.
constexpr int kReadsAtOnce = 8;

template <typename T>
bool read_body(std::span<const std::byte> body, T* value) {
  if (body.size() != sizeof(*value)) return false;
  std::memcpy(value, body.data(), sizeof(*value));
  return true;
}

}  // namespace

// What becomes of the frames of one connection.
class TcpTransport::Taker final : public tcp::FrameTaker {
 public:
  Taker(TcpTransport& transport, Peer& peer, Stream& stream)
      : transport_(transport), peer_(peer), stream_(stream) {}

  // All but puts come over the first stream, in order.
  Heard hear(const FrameHead& head, std::span<const std::byte> body) override {
    if (!is_first()) return Heard::Wrong;
    switch (head.kind) {
      case FrameKind::Signal:
        return heard(hear_signal(head, body));
      case FrameKind::Get:
        return heard(hear_get(head, body));
      case FrameKind::Update:
        return heard(hear_update(head, body));
      case FrameKind::Updated:
        return heard(hear_updated(head, body));
      case FrameKind::Mark:
        return hear_mark(body);
      case FrameKind::Closed:
      case FrameKind::Withdrawn:
        return heard(hear_notice(head, body));
      case FrameKind::Offered:
        return heard(hear_offer(head, body));
      case FrameKind::Bye:
        peer_.said_goodbye = true;
        return Heard::Done;
      default:
        return Heard::Wrong;
    }
  }

  Place place_of(const FrameHead& head) override {
    if (head.kind == FrameKind::Got) {
      return is_first() ? place_of_answer(head) : Place{Place::Kind::Wrong};
    }
    if (tcp::is_placement(head.region)) return place_of_lent(head);
    OwnRegion* region = region_of(head);
    if (region == nullptr || !takes_puts(region->access) ||
        !region->holds(head.offset, head.bytes)) {
      return {Place::Kind::Wrong};
    }
    if (region->is_cut_off) return {Place::Kind::Nowhere};
    return {Place::Kind::Here, region->base + head.offset};
  }

  void arrived(const FrameHead& head) override {
    if (head.kind == FrameKind::Put) {
      ++stream_.puts_in;
    } else {
      answered();
    }
  }

 private:
  static Heard heard(bool right) { return right ? Heard::Done : Heard::Wrong; }

  bool is_first() const { return &stream_ == peer_.streams[0].get(); }

  // nullptr: there is none of this use of the id, or nobody has it open any more. Of a part every
  // use is the same.
  OwnRegion* region_of(const FrameHead& head) const {
    OwnRegion* region = transport_.regions_.at(head.region);
    if (region == nullptr || has_short_key(region->access)) return region;
    const bool same = static_cast<uint16_t>(region->lease.generation) == head.generation;
    return same && !region->uses ? region : nullptr;
  }

  bool hear_signal(const FrameHead& head, std::span<const std::byte> said) {
    if (said.size() < tcp::kSignalHeadBytes) return false;
    const OwnRegion* region = region_of(head);
    if (region == nullptr || !takes_signals(region->access) || head.offset % kLineBytes != 0 ||
        !region->holds(head.offset, kLineBytes)) {
      return false;
    }
    tcp::SignalBody body;
    std::memcpy(&body, said.data(), said.size());
    Header header;
    header.signature = body.signature;
    header.length_and_sequence = body.length_and_sequence;
    header.credit = body.credit;
    header.inline_bytes = static_cast<uint32_t>(said.size() - tcp::kSignalHeadBytes);
    std::memcpy(header.inline_data, body.inline_data, header.inline_bytes);
    transport_.store_line({head.region, head.offset, kLineBytes}, body.counter, header);
    return true;
  }

  // Answered in order, behind what was sent before.
  bool hear_get(const FrameHead& head, std::span<const std::byte> said) {
    tcp::GetBody body;
    const OwnRegion* region = region_of(head);
    if (!read_body(said, &body) || body.bytes == 0 || region == nullptr ||
        !takes_gets(region->access) || !region->holds(head.offset, body.bytes)) {
      return false;
    }
    tcp::SendQueue& out = peer_.streams[0]->out;
    if (!out.has_room_to_answer()) return false;  // more gets than may be under way
    out.push_payload(FrameHead{.kind = FrameKind::Got, .number = head.number},
                     region->base + head.offset, body.bytes, ++peer_.sends.posted);
    transport_.to_write(peer_);
    return true;
  }

  void answered() { peer_.gets.transfers.raise_done(peer_.gets.transfers.done.load() + 1); }

  // As a get. Of a region that is cut off nothing changes: who has it open is told so otherwise.
  bool hear_update(const FrameHead& head, std::span<const std::byte> said) {
    tcp::UpdateBody body;
    const OwnRegion* region = region_of(head);
    if (!read_body(said, &body) || region == nullptr || !takes_updates(region->access) ||
        head.offset % kWordBytes != 0 || !region->holds(head.offset, kWordBytes) ||
        body.kind > static_cast<uint64_t>(Update::Kind::CompareSwap)) {
      return false;
    }
    tcp::SendQueue& out = peer_.streams[0]->out;
    if (!out.has_room_to_answer()) return false;  // more than may be under way
    const Update update{static_cast<Update::Kind>(body.kind), body.operand, body.expected};
    const uint64_t before = region->is_cut_off ? 0 : update.apply_to(region->base + head.offset);
    out.push_body(FrameHead{.kind = FrameKind::Updated, .number = head.number}, &before,
                  sizeof(before));
    transport_.to_write(peer_);
    return true;
  }

  bool hear_updated(const FrameHead& head, std::span<const std::byte> said) {
    const Place place = place_of_answer(head);
    if (said.size() != kWordBytes || place.kind != Place::Kind::Here) return false;
    std::memcpy(place.at, said.data(), said.size());
    answered();
    return true;
  }

  Place place_of_answer(const FrameHead& head) {
    const uint64_t next = peer_.gets.transfers.done.load() + 1;
    if (next > peer_.gets.transfers.posted || static_cast<uint32_t>(next) != head.number) {
      return {Place::Kind::Wrong};
    }
    const LocalSlice& place = peer_.gets.place(next);
    if (place.bytes != head.bytes) return {Place::Kind::Wrong};
    return {Place::Kind::Here, place.data};
  }

  Place place_of_lent(const FrameHead& head) {
    std::byte* at = nullptr;
    switch (transport_.placements_.find(peer_.id, head.region, head.number, head.offset, head.bytes,
                                        &at)) {
      case tcp::Placements::Found::Live:
        return {Place::Kind::Here, at};
      case tcp::Placements::Found::Over:
        return {Place::Kind::Nowhere};
      default:
        return {Place::Kind::Wrong};
    }
  }

  Heard hear_mark(std::span<const std::byte> said) {
    tcp::MarkBody body;
    if (!read_body(said, &body)) return Heard::Wrong;
    for (size_t i = 1; i < peer_.streams.size(); ++i) {
      if (static_cast<int32_t>(peer_.streams[i]->puts_in - body.puts[i - 1]) < 0) {
        return Heard::Later;
      }
    }
    return Heard::Done;
  }

  bool hear_notice(const FrameHead& head, std::span<const std::byte> said) {
    tcp::RegionNotice about;
    if (!read_body(said, &about) || head.region >= kMaxRegions) return false;
    transport_.hear_of_region(peer_, head, about.generation);
    return true;
  }

  bool hear_offer(const FrameHead& head, std::span<const std::byte> said) {
    tcp::OfferBody offer;
    return read_body(said, &offer) && transport_.hear_offer(peer_, head.region, offer);
  }

  TcpTransport& transport_;
  Peer& peer_;
  Stream& stream_;
};

void TcpTransport::take_events() {
  epoll_event events[32];
  const int count = ::epoll_wait(data_set_.get(), events, std::size(events), 0);
  for (int i = 0; i < count; ++i) {
    const tcp::EventTag tag = tcp::EventTag::unpack(events[i].data.u64);
    Peer& peer = peer_at(tag.peer);
    if (peer.alive() && (events[i].events & EPOLLOUT) != 0) write_stream(peer, tag.stream);
    if (peer.alive()) read(peer, tag.stream);
  }
}

void TcpTransport::read(Peer& peer, size_t at) {
  Stream& stream = *peer.streams[at];
  Taker taker(*this, peer, stream);
  using Read = FrameReader::Read;
  Read got = stream.in.waits() && !stream.in.resume(taker) ? Read::Broken : Read::More;
  for (int i = 0; i < kReadsAtOnce && got == Read::More && !stream.in.waits(); ++i) {
    got = stream.in.read(stream.fd.get(), taker);
  }
  const int error = got == Read::Failed ? errno : 0;
  // What waits at the first stream may have waited for this one.
  Stream& first = *peer.streams[0];
  if (at > 0 && first.in.waits()) {
    Taker of_first(*this, peer, first);
    if (!first.in.resume(of_first)) got = Read::Broken;
  }
  if (got == Read::Broken) {
    lose(peer, PeerState::Broken,
         Status(StatusCode::PeerFailed, peer.name +
                                            " broke the protocol of tcp: somebody interfered with "
                                            "the connection, or its memory is corrupt"));
  } else if (got == Read::Ended || got == Read::Failed) {
    end_stream(peer, at, error);
  }
  if (!peer.alive()) return;
  watch(peer, at);
  watch(peer, 0);
}

// The first stream tells when the peer has ended: what it said last may still be on its way there.
void TcpTransport::end_stream(Peer& peer, size_t at, int error) {
  Stream& first = *peer.streams[0];
  peer.streams[at]->has_ended = true;
  const bool no_puts_come = std::all_of(peer.streams.begin() + 1, peer.streams.end(),
                                        [](const auto& stream) { return stream->has_ended; });
  if (at == 0 || (no_puts_come && first.in.waits())) return lose_at_end(peer, error);
  ::epoll_ctl(data_set_.get(), EPOLL_CTL_DEL, peer.streams[at]->fd.get(), nullptr);
  if (peer.ended_since_ns == 0) peer.ended_since_ns = clock_.now_ns();
}

}  // namespace rdmacoll
