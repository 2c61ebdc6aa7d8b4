// VerbsTransport: what poll() takes from the completion queue. No lock, no allocation; a system
// call only when a peer is lost. Floor: transport/verbs. Thread: the driver.
#include <arpa/inet.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/transport/verbs/device/errors.h"
#include "csrc/transport/verbs/transport.h"

namespace rdmacoll {

using verbs::Immediate;
using verbs::QueuePair;
using verbs::SignalRecord;
using verbs::WindowWord;
using verbs::WorkId;

void VerbsTransport::poll() {
  ibv_wc completions[verbs::kCompletionsPerPoll];
  const int count = completions_.poll(completions, verbs::kCompletionsPerPoll);
  for (int i = 0; i < count; ++i) take(completions[i]);
  if (!chained_.empty()) {
    for (Peer* peer : chained_) {
      peer->chained = false;
      for (const auto& stripe : peer->stripes) {
        if (peer->alive() && stripe->chained()) ring(*peer, *stripe);
      }
    }
    chained_.clear();
  }
  if (errands_.is_time_to_look() || has_time_passed()) run_errands();
}

void VerbsTransport::take(const ibv_wc& completion) {
  const WorkId id = WorkId::unpack(completion.wr_id);
  Peer* peer = peers_.at(id.peer);
  const PeerState state = peer->state.load(std::memory_order_acquire);
  if (state == PeerState::Broken) return;
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    // Of a peer that has left, queue pairs break as they may.
    if (state != PeerState::Gone) {
      lose(*peer, PeerState::Broken,
           completion_error(completion, peer->address.who(), *device_, config_));
    }
    return;
  }
  peer->heard = true;
  if (id.receive) {
    take_receive(*peer, id.stripe, ntohl(completion.imm_data));
  } else {
    peer->stripes[id.stripe]->retire(id.sequence);
    peer->note_done();
  }
  tell_window(*peer);
}

void VerbsTransport::take_receive(Peer& peer, uint8_t stripe, uint32_t immediate) {
  if (stripe == 0) {
    peer.deferred.push(immediate);
  } else {
    ++peer.marks[stripe];
    make_room(peer, stripe);
  }
  take_deferred(peer);
}

void VerbsTransport::take_deferred(Peer& peer) {
  while (!peer.deferred.empty()) {
    const Immediate immediate = Immediate::unpack(peer.deferred.front());
    if (immediate.is_notice()) {
      take_notice(peer, immediate.line);
    } else if (!take_signal(peer, immediate)) {
      return;
    }
    peer.deferred.pop();
    ++peer.in.taken;
    make_room(peer, 0);
  }
}

// False: marks on other stripes, that come before it, are not here yet.
bool VerbsTransport::take_signal(Peer& peer, Immediate immediate) {
  const SignalRecord& record = peer.next_record();
  for (size_t i = 1; record.stripes >> i != 0; ++i) {
    if ((record.stripes >> i & 1) != 0 && peer.marks[i] == 0) return false;
  }
  for (size_t i = 1; record.stripes >> i != 0; ++i) peer.marks[i] -= record.stripes >> i & 1;
  peer.out.returned = verbs::advance_to(peer.out.returned, record.returned);
  const verbs::OwnRegion* region = regions_.at(immediate.region);
  const uint64_t offset = uint64_t{immediate.line} * kLineBytes;
  // Of a region that was released meanwhile nobody looks at the lines; nothing else is trusted.
  if (region == nullptr || !takes_signals(region->access) || offset + kLineBytes > region->bytes)
    return true;
  record.write_to(*reinterpret_cast<Line*>(region->base + offset));
  return true;
}

void VerbsTransport::take_notice(Peer& peer, uint32_t notice) {
  if (notice == Immediate::kGoodbye) {
    lose(peer, PeerState::Gone, Status(StatusCode::PeerFailed, peer.address.who() + " has left"));
    return;
  }
  if (notice == Immediate::kRegionOffered) {
    if (const auto offer = verbs::OfferNotice::of(peer.next_record())) hear_offer(peer, *offer);
    return;
  }
  if (notice != Immediate::kRegionClosed && notice != Immediate::kRegionWithdrawn) return;
  const SignalRecord& record = peer.next_record();
  hear_of_region(peer, notice, verbs::RegionNotice::of(record));
}

// Posts receives again by the batch. Of stripe 0, one that a signal has used counts only when the
// signal was taken, so that no more than the window's are ever deferred.
void VerbsTransport::make_room(Peer& peer, uint8_t stripe) {
  if (++peer.in.consumed[stripe] < verbs::kReceiveBatch) return;
  const int error = peer.stripes[stripe]->post_receive_batch();
  if (error != 0) {
    lose(peer, PeerState::Broken,
         call_error("posting receives for " + peer.address.who(), error, *device_));
    return;
  }
  peer.in.consumed[stripe] = 0;
  if (stripe == 0) peer.in.returned += verbs::kReceiveBatch;
}

void VerbsTransport::tell_window(Peer& peer) {
  if (!peer.in.is_to_be_told()) [[likely]]
    return;
  QueuePair& first = *peer.stripes[0];
  if (!peer.alive() || !first.has_room(1)) return;  // the next completion comes here again
  const uint64_t room = peer.in.words_told++ % verbs::SignalRing::kRooms;
  first.write_word(
      WindowWord::of(peer.in.returned),
      {peer.its_ring.address + offsetof(verbs::SignalRing, rooms) + room * sizeof(WindowWord),
       peer.its_ring.rkey});
  count_control_message();
  peer.in.told = peer.in.returned;
  ring(peer, first);
}

void VerbsTransport::lose(Peer& peer, PeerState state, Status why) {
  {
    const std::lock_guard lock(mutex_);
    const PeerState before = peer.state.load(std::memory_order_relaxed);
    if (before == PeerState::Gone || before == PeerState::Broken) return;
    if (!failures_.reported.empty() && state == PeerState::Broken) {
      why = Status(why.code(),
                   why.message() + "; before that the device reported: " + failures_.reported);
    }
    note_end(peer.id, why);
    peer.state.store(state, std::memory_order_release);
    peer.transfers.raise_done(UINT64_MAX);
    errands_.note();  // regions may have had it as their last reader
    log_.write(state == PeerState::Gone ? LogLevel::Debug : LogLevel::Warn, why.message());
    changed_.notify_all();
  }
  if (state == PeerState::Broken) {
    for (const auto& stripe : peer.stripes) stripe->give_up();
  }
}

}  // namespace rdmacoll
