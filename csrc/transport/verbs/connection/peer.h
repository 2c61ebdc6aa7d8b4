// Peer: what the verbs transport keeps of another process, and the parts of that; OwnRegion:
// of its own memory. Floor: transport/verbs/connection. Thread: see each field.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/memory/region.h"
#include "csrc/memory/shared_segment.h"
#include "csrc/transport/lease.h"
#include "csrc/transport/opened_regions.h"
#include "csrc/transport/transfers.h"
#include "csrc/transport/verbs/connection/address.h"
#include "csrc/transport/verbs/connection/queue_pair.h"
#include "csrc/transport/verbs/connection/wire.h"

namespace rdmacoll::verbs {

// A region of a peer that may be put to.
struct RemoteRegion : OpenedRegion {
  uint64_t address;
  uint32_t rkey;
};

enum class PeerState : uint8_t {
  Connecting,  // handshakes go to and fro
  Alive,
  Gone,    // it said goodbye: it will write no more
  Broken,  // the connection ended
};

// Signals whose marks on other stripes have not all come, and those behind them, in order.
class DeferredSignals {
 public:
  bool empty() const { return head_ == tail_; }
  void push(uint32_t immediate) {
    RDMACOLL_CHECK(tail_ - head_ < kSize);
    ring_[tail_++ % kSize] = immediate;
  }
  uint32_t front() const { return ring_[head_ % kSize]; }
  void pop() { ++head_; }

 private:
  static constexpr uint64_t kSize = kReceiveDepth + kReceiveBatch;
  std::array<uint32_t, kSize> ring_{};
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
};

// Signals to a peer, counted against the receives that it has posted for them.
struct SendWindow {
  uint64_t sent = 0;
  uint64_t returned = 0;  // of these, those that it has made room for again

  bool is_full() const { return sent - returned >= kReceiveDepth; }
  // Where in the peer's ring the record of the next one goes.
  uint64_t offset() const { return sent % kReceiveDepth * sizeof(SignalRecord); }
};

// And those that come from it.
struct ReceiveWindow {
  uint64_t taken = 0;
  uint64_t returned = 0;                         // of these, what has been made room for again
  uint64_t told = 0;                             // of these, what the peer knows of
  uint64_t words_told = 0;                       // by a word of its own
  std::array<uint32_t, kMaxStripes> consumed{};  // receives to be posted again

  bool is_to_be_told() const { return returned - told >= kTellEvery; }
};

// What a peer writes its signals to.
struct OwnSignalRing {
  std::unique_ptr<SharedSegment> memory;
  ibv_mr* registered = nullptr;

  SignalRing& ring() const { return *reinterpret_cast<SignalRing*>(memory->data()); }
  QueuePair::Remote as_remote() const {
    return {reinterpret_cast<uint64_t>(memory->data()), registered->rkey};
  }
};

// How far two processes are in joining their queue pairs.
struct PeerHandshake {
  ibv_ah* way = nullptr;         // to the peer's listener
  uint32_t packet_sequence = 0;  // my first
  bool forged = false;           // somebody spoke in its name without knowing the job's secret
  bool heard_hello = false;      // its queue pair numbers have come
  bool knows_me = false;         // and it has joined its own to mine
  int64_t hello_at_ns = 0;       // when it is told of mine again
  int64_t hello_after_ms = 0;    // and how long after that
  uint16_t offers_made = 0;      // to it; all mod 2^16
  uint16_t offers_told = 0;      // that it has made, as it says
  uint16_t offers_heard = 0;     // of these, what has come

  bool misses_offers() const { return offers_heard != offers_told; }
  void note_told(uint16_t offers) {
    if (static_cast<uint16_t>(offers - offers_told) < 1u << 15) offers_told = offers;
  }
  void note_heard() {
    ++offers_heard;
    note_told(offers_heard);
  }
};

struct Peer {
  // Fixed once published.
  uint32_t id = 0;
  Address address;
  bool is_self = false;
  std::vector<std::unique_ptr<QueuePair>> stripes;
  OwnSignalRing own_ring;

  OpenedRegions<RemoteRegion> regions;
  // The driver reads, others write.
  std::atomic<PeerState> state{PeerState::Connecting};
  QueuePair::Remote its_ring{};  // before Alive

  // The driver's. Out:
  SendWindow out;
  Transfers transfers;
  uint8_t dirty_stripes = 0;  // put to since the last signal; bit 0 is not used
  bool chained = false;       // requests that no call has handed over yet
  // In:
  ReceiveWindow in;
  DeferredSignals deferred;
  std::array<uint32_t, kMaxStripes> marks{};  // come, and no signal has asked for them yet
  bool said_goodbye = false;
  bool heard = true;  // something, since the last look
  int64_t unheard_looks = 0;

  // Under the transport's mutex.
  PeerHandshake handshake;

  // The record of the signal, or notice, that is taken next.
  const SignalRecord& next_record() const {
    return own_ring.ring().records[in.taken % kReceiveDepth];
  }
  // The device is done with something. A stripe whose newest is done holds back none of the others.
  void note_done() {
    uint64_t done = transfers.posted;
    for (const auto& stripe : stripes) done = std::min(done, stripe->done_up_to(transfers.posted));
    transfers.raise_done(done);
  }
  bool alive() const { return state.load(std::memory_order_acquire) == PeerState::Alive; }
};

// Memory of this process, registered with the device.
struct OwnRegion {
  RegionId id = kNoRegion;
  std::shared_ptr<SharedSegment> memory;
  // Of the memory, what is registered.
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  Access access = Access::Full;
  ibv_mr* registered = nullptr;

  // Under the transport's mutex.
  Lease lease;
  // The driver's, once it is released: puts and gets of this process that may still use it.
  std::optional<std::vector<Ticket>> uses;
};

}  // namespace rdmacoll::verbs
