// Peer: what the tcp transport keeps of another process, and the parts of that; OwnRegion: of its
// own memory. Floor: transport/tcp/connection. Thread: see each field.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/limits.h"
#include "csrc/base/process_id.h"
#include "csrc/memory/region.h"
#include "csrc/memory/shared_segment.h"
#include "csrc/memory/sole_fd.h"
#include "csrc/transport/lease.h"
#include "csrc/transport/opened_regions.h"
#include "csrc/transport/tcp/connection/frame_reader.h"
#include "csrc/transport/tcp/connection/handshake.h"
#include "csrc/transport/tcp/connection/placements.h"
#include "csrc/transport/tcp/connection/send_queue.h"
#include "csrc/transport/transfers.h"
#include "csrc/transport/transport.h"

namespace rdmacoll::tcp {

// What an event of the epoll set of connections is about.
struct EventTag {
  PeerId peer;
  uint32_t stream;

  uint64_t pack() const { return uint64_t{peer} << 32 | stream; }
  static EventTag unpack(uint64_t packed) {
    return {static_cast<PeerId>(packed >> 32), static_cast<uint32_t>(packed)};
  }
};

// What a peer has lent this process, by its slot.
struct OpenedPlacement {
  uint64_t bytes = 0;
  uint32_t use = 0;

  bool holds(uint64_t offset, uint64_t count) const {
    return offset <= bytes && count <= bytes - offset;
  }
};

// One connection to a peer. The driver's.
struct Stream {
  Stream(SoleFd socket, const FrameKeys& keys)
      : fd(std::move(socket)), out(keys.out), in(keys.in) {}

  SoleFd fd;
  SendQueue out;
  FrameReader in;
  uint32_t watched = 0;    // for which events, by the epoll set
  bool is_full = false;    // the socket takes nothing now
  bool has_ended = false;  // and all of it is read
  uint32_t puts_out = 0;   // mod 2^32, of this stream
  uint32_t puts_in = 0;    // that have come whole
};

// Gets and updates that the peer has not answered. It answers in order.
struct Gets {
  std::array<LocalSlice, kMostGets> places;
  Transfers transfers;

  bool is_full() const {
    return transfers.posted - transfers.done.load(std::memory_order_relaxed) >= kMostGets;
  }
  bool are_answered() const {
    return transfers.posted <= transfers.done.load(std::memory_order_relaxed);
  }
  LocalSlice& place(uint64_t number) { return places[number % kMostGets]; }
};

enum class PeerState : uint8_t {
  Alive,
  Gone,    // it said goodbye, or its host says that it has ended: it will write no more
  Broken,  // given up although it may live
};

struct Peer {
  // Fixed once published.
  PeerId id = 0;
  ProcessId process{};
  std::string name;  // for messages: pid and host
  bool is_self = false;
  std::vector<std::unique_ptr<Stream>> streams;  // none of this process itself

  OpenedRegions<OpenedRegion> regions;  // of the peer, that may be put to
  std::atomic<PeerState> state{PeerState::Alive};

  // The driver's.
  Transfers sends;  // puts, and answers to the peer's gets: what is read here
  Gets gets;
  std::array<OpenedPlacement, kPlacements> placements{};  // of the peer's, lent to this process
  bool marks_due = false;  // puts have gone over other streams since the last mark
  bool is_unsent = false;  // it is among those that poll() writes to
  bool said_goodbye = false;
  int64_t owes_since_ns = 0;   // an answer to something that was sent; 0: it does not
  int64_t ended_since_ns = 0;  // one of its streams but the first; 0: none has

  bool alive() const { return state.load(std::memory_order_acquire) == PeerState::Alive; }
  // Bytes have been written. A stream whose newest is done holds back none of the others.
  void note_written() {
    uint64_t done = sends.posted;
    for (const auto& stream : streams) done = std::min(done, stream->out.done_up_to(sends.posted));
    sends.raise_done(done);
  }
};

// Memory of this process that peers may reach.
struct OwnRegion {
  RegionId id = kNoRegion;
  std::shared_ptr<SharedSegment> memory;
  // Of the memory, what is the region.
  uint64_t offset = 0;
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  Access access = Access::Full;
  bool is_cut_off = false;  // the driver's: what peers put there is dropped

  // Under the transport's mutex.
  Lease lease;
  // The driver's, once nobody has it open: what of this process may still use it.
  std::optional<std::vector<Ticket>> uses;

  bool holds(uint64_t offset, uint64_t count) const {
    return offset <= bytes && count <= bytes - offset;
  }
};

}  // namespace rdmacoll::tcp
