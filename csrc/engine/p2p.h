// PointToPoint: sends and receives of one communicator, matched in order per (source, tag).
// Floor: engine. Thread: the driver.
//
//   sender                                   receiver
//   envelope {tag, bytes, number}  ------->  matched against posted receives, else kept aside
//                                  <-------  grant {number}, once matched
//   chunks through the data slots  ------->  copied out, in the order of the grants
//
// Up to kEagerBytes travel in the envelope and need no grant. An unexpected message costs its
// envelope, never its data, so sends and receives in any order on both sides do not block each
// other. Steps: 3 one-way latencies (1 if eager). Bytes on the wire: the message and 2 lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/engine/call.h"
#include "csrc/engine/flight_recorder.h"
#include "csrc/engine/port.h"
#include "csrc/engine/work.h"

namespace rdmacoll {

inline constexpr uint64_t kEagerBytes = 24;
inline constexpr int kAnySource = -1;

struct SendOp {
  WorkPtr work;
  const std::byte* data;
  uint64_t bytes;
  uint32_t peer;
  int32_t tag;
  int64_t started_ns;
  int64_t deadline_ns;
  uint32_t number = 0;  // of the envelopes to this peer
  uint64_t moved = 0;   // bytes handed to the data channel
  uint32_t record = FlightRing::kNone;
};

struct RecvOp {
  WorkPtr work;
  std::byte* data;
  uint64_t bytes;
  int32_t source;  // or kAnySource
  int32_t tag;
  int64_t started_ns;
  int64_t deadline_ns;
  uint32_t number = 0;    // of the envelope it was matched with
  bool accepted = false;  // the sizes agree, data will come
  uint64_t moved = 0;     // bytes copied out
  uint32_t record = FlightRing::kNone;
};

class PointToPoint {
 public:
  PointToPoint(uint32_t rank, uint32_t world, std::vector<std::vector<Port>>& ports,
               uint64_t slot_bytes, FlightLog& log);

  void send(SendOp op);
  void recv(RecvOp op, std::vector<Completion>& finished);
  // One round; finished works are appended. Whether anything moved.
  bool advance(std::vector<Completion>& finished);
  bool idle() const { return pending_ == 0; }

  // Ends receives that nothing has matched by their deadline; Timeout when another operation is
  // over its own, as that leaves a channel in the middle of a message.
  Status expire(int64_t now_ns, std::vector<Completion>& finished);
  // What is in flight, one of those that have waited longest; for people.
  std::optional<MessageCall> oldest() const;
  // Whether an operation in flight cannot end without this peer.
  bool needs(uint32_t peer) const;
  void fail_all(const Status& status, std::vector<Completion>& finished);

 private:
  struct Envelope {
    uint32_t source;
    uint32_t number;
    int32_t tag;
    uint64_t bytes;
    std::byte eager[kEagerBytes];
  };
  // What passes between this rank and one peer.
  struct Peer {
    std::deque<SendOp> unannounced;
    std::deque<SendOp> announced;  // wait for their grant
    std::deque<SendOp> granted;    // in the order of the grants
    std::deque<RecvOp> matched;    // wait until their grant is out
    std::deque<RecvOp> incoming;   // in the order of the grants
    uint32_t envelopes = 0;        // announced so far
  };

  bool announce_sends(uint32_t peer, std::vector<Completion>& finished);
  bool take_envelopes(uint32_t peer, std::vector<Completion>& finished);
  bool grant_receives(uint32_t peer);
  bool take_grants(uint32_t peer, std::vector<Completion>& finished);
  bool push_data(uint32_t peer, std::vector<Completion>& finished);
  bool pull_data(uint32_t peer, std::vector<Completion>& finished);
  void match(RecvOp op, const Envelope& envelope, std::vector<Completion>& finished);
  template <typename Op>
  void finish(const Op& op, Status status, std::vector<Completion>& finished);
  Port& port(uint8_t channel, uint32_t peer) { return ports_[channel][peer]; }

  uint32_t rank_;
  std::vector<std::vector<Port>>& ports_;
  uint64_t slot_bytes_;
  FlightLog& log_;
  std::vector<Peer> peers_;
  std::deque<RecvOp> posted_;
  std::deque<Envelope> unexpected_;
  uint64_t pending_ = 0;  // works not finished
};

}  // namespace rdmacoll
