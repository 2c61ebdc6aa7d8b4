// PointToPoint: sends and receives of one communicator, matched in order per (source, tag).
// Floor: engine/p2p. Thread: the driver.
//
//   sender                                   receiver
//   envelope {tag, bytes, number}  ------->  matched against posted receives, else kept aside
//                                  <-------  clear to send {number, where to}, once matched
//   chunks through the data slots  ------->  copied out, in the same order
//   or, of larger ones: out of the sender's heap, by a receiver that maps it; from there into the
//   slots of one that does not; or, over a transport that reads and writes any memory
//   (transport.h), from the sender's tensor straight into the receiver's: p2p_data.cc
//
// Eager messages need no clearance: up to kEnvelopeBytes travel in the envelope, larger ones beside
// it in one of a few small slots, if one is free, where they stay until they are matched
// (eager_inbox.h). So an unexpected message costs its envelope, never a copy of its data, and sends
// and receives in any order on both sides do not block each other. Steps: 3 one-way latencies (1 if
// eager). Bytes on the wire: the message and 2 lines (1 in the envelope).
//
// What a rank sends to itself is matched in the same queues, by p2p_self.cc, and copied from buffer
// to buffer. Its eager messages are kept aside, as many as there are slots for a peer's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/fifo.h"
#include "csrc/base/status.h"
#include "csrc/engine/channel/heap.h"
#include "csrc/engine/channel/peer_links.h"
#include "csrc/engine/channel/port.h"
#include "csrc/engine/channel/store_choice.h"
#include "csrc/engine/p2p/eager_inbox.h"
#include "csrc/engine/recorder/flight_recorder.h"
#include "csrc/engine/work/call.h"
#include "csrc/engine/work/work.h"

namespace rdmacoll {

inline constexpr uint64_t kEnvelopeBytes = 24;
inline constexpr int kAnySource = -1;

// How the bytes of a message travel.
enum class Protocol : uint8_t { Inline, Eager, Rendezvous };

struct SendOp {
  WorkPtr work{};
  const std::byte* data = nullptr;
  uint64_t bytes = 0;
  uint32_t peer = 0;
  int32_t tag = 0;
  int64_t started_ns = 0;
  int64_t deadline_ns = 0;
  Protocol protocol = Protocol::Rendezvous;
  bool in_slot = false;       // its bytes are in the slot beside the envelope
  uint32_t number = 0;        // of the envelopes to this peer
  uint64_t moved = 0;         // bytes handed to the data channel
  Region placed{};            // what the receiver has lent for it; no bytes: nothing
  bool is_zero_copy = false;  // it is read where it lies, in this rank's heap
  StoreChoice::Use stores{};  // of these
  uint32_t record = FlightRing::kNone;

  bool is_placed() const { return placed.bytes > 0; }
  MessageCall call() const;
};

struct RecvOp {
  WorkPtr work{};
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  int32_t source = 0;  // or kAnySource
  int32_t tag = 0;
  int64_t started_ns = 0;
  int64_t deadline_ns = 0;
  uint64_t sent_bytes = 0;  // by the envelope it was matched with
  uint32_t number = 0;      // of that
  uint64_t eager = 0;       // where Protocol::Eager: its number in the inbox
  uint64_t moved = 0;       // bytes that are in place
  Placement placement{};    // what is lent to the sender for it
  uint32_t record = FlightRing::kNone;

  bool fits() const { return bytes == sent_bytes; }
  bool matches(uint32_t from, int32_t with_tag) const;
  MessageCall call() const;
};

Status size_mismatch(uint32_t sender, uint64_t sent, uint32_t receiver, uint64_t room);

class PointToPoint {
 public:
  PointToPoint(PeerLinks& links, const Heap* heap, const Config& config, const Clock& clock,
               FlightLog& log);

  // A rank was met: what this one has for it can go, and what it sends is taken.
  void note_met(uint32_t rank);
  void send(SendOp op, std::vector<Completion>& finished);
  void recv(RecvOp op, std::vector<Completion>& finished);
  // One round; finished works are appended. Whether anything moved.
  bool advance(std::vector<Completion>& finished);
  bool idle() const { return pending_ == 0; }

  // --- p2p_self.cc ----------------------------------------------------------------------------
  // Ends sends to this rank itself that somebody waits for although no receive has been posted.
  void withdraw_own(std::vector<Completion>& finished);

  // --- p2p_failure.cc -------------------------------------------------------------------------
  // Ends receives that nothing has matched by their deadline; Timeout when another operation is
  // over its own, as that leaves a channel in the middle of a message.
  Status expire(int64_t now_ns, std::vector<Completion>& finished);
  // What is in flight, one of those that have waited longest; for people.
  std::optional<MessageCall> oldest() const;
  // Whether an operation in flight cannot end without this peer.
  bool needs(uint32_t peer) const;
  // All but sends whose tensors the transport still reads: these stay.
  void fail_all(const Status& status, std::vector<Completion>& finished);
  bool is_sending_to(uint32_t peer) const;
  bool is_sending() const;
  // Those that have stayed. Nothing reads them any more.
  void fail_sending(const Status& status, std::vector<Completion>& finished);

 private:
  struct Envelope {
    uint32_t source = 0;
    uint32_t number = 0;
    int32_t tag = 0;
    uint64_t bytes = 0;
    Protocol protocol = Protocol::Rendezvous;
    uint64_t eager = 0;  // RecvOp's
    std::byte data[kEnvelopeBytes] = {};
  };
  // The bytes of an eager message to this rank itself.
  struct Kept {
    uint32_t number = 0;
    std::vector<std::byte> bytes{};
  };
  // What passes between this rank and one peer.
  struct Peer {
    explicit Peer(uint32_t its_rank) : rank(its_rank) {}
    const uint32_t rank;
    MetPeer* met = nullptr;           // once it is; never this rank itself
    std::optional<EagerInbox> inbox;  // then
    Fifo<SendOp> unannounced;
    Fifo<SendOp> announced;  // wait to be cleared; to this rank itself, for their receive
    Fifo<SendOp> cleared;    // in the order in which they were cleared
    Fifo<RecvOp> matched;    // wait until their clear-to-send is out
    Fifo<RecvOp> incoming;   // in the order in which they were cleared
    Fifo<RecvOp> expected;   // matched, their bytes are on their way to the inbox
    uint32_t envelopes = 0;  // announced so far
  };

  bool announce_sends(Peer& peer, std::vector<Completion>& finished);
  bool choose_way(const Peer& peer, SendOp& op);
  bool take_envelopes(Peer& peer, std::vector<Completion>& finished);
  bool clear_receives(Peer& peer);
  bool take_clearances(Peer& peer, std::vector<Completion>& finished);
  bool push_data(Peer& peer, std::vector<Completion>& finished);
  bool push_chunk(SendOp& op, Port& out);
  std::optional<ZeroCopySource> zero_copy_source(const SendOp& op, const Port& out,
                                                 uint64_t chunk) const;
  bool may_be_zero_copy(const SendOp& op, const Port& out) const;
  bool may_be_written(const SendOp& op, const Peer& peer) const;
  bool pull_chunk(RecvOp& op, const Peer& peer);
  static bool is_read_by_device(const SendOp& op, const Peer& peer);
  bool pull_data(Peer& peer, std::vector<Completion>& finished);
  void match(RecvOp op, const Envelope& envelope, std::vector<Completion>& finished);
  bool take_expected(Peer& peer, std::vector<Completion>& finished);
  bool take_eager(Peer& peer, const RecvOp& op, std::vector<Completion>& finished);
  void send_to_self(SendOp op, std::vector<Completion>& finished);
  bool keep(const SendOp& op, Envelope& envelope);
  void take_from_self(const RecvOp& op, const Envelope& envelope,
                      std::vector<Completion>& finished);
  template <typename IsIt, typename Why>
  void drop_own(IsIt is_it, Why why, std::vector<Completion>& finished);
  void expire_own(int64_t now_ns, std::vector<Completion>& finished);
  void fail_own(const Status& status, std::vector<Completion>& finished);
  template <typename Op>
  void finish(const Op& op, Status status, std::vector<Completion>& finished) {
    --pending_;
    log_.end_point_to_point(op.record, status.ok());
    finished.push_back({op.work, std::move(status)});
  }
  void end_placement(const RecvOp& op, uint32_t sender);
  bool is_sending_to(const Peer& peer) const;
  // Of one that is met.
  static Port& port(uint8_t channel, const Peer& peer) { return peer.met->ports[channel]; }
  static uint32_t rank_of(const std::unique_ptr<Peer>& peer) { return peer->rank; }
  // nullptr: this rank has had nothing to do with it. Itself it knows.
  Peer* find(uint32_t rank) const;
  // The state of a peer that this rank has to do with, from the first time on.
  Peer& state_of(uint32_t peer);

  PeerLinks& links_;
  const Heap* const heap_;
  const uint32_t rank_;
  const uint64_t slot_bytes_;
  const uint64_t eager_bytes_;
  const uint64_t zero_copy_local_bytes_;
  const uint64_t zero_copy_remote_bytes_;
  StoreChoice store_choice_;
  FlightLog& log_;
  std::vector<std::unique_ptr<Peer>> known_;  // in the order of ranks; this rank itself is there
  // With room: which of the two a message meets is a matter of time, so that either may be used
  // first when all else has long been at rest.
  Fifo<RecvOp> posted_{kEnvelopeDepth};
  Fifo<Envelope> unexpected_{kEnvelopeDepth};
  Fifo<Kept> kept_;
  uint64_t pending_ = 0;  // works not finished
};

}  // namespace rdmacoll
