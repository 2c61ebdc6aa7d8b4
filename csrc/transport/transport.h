// Transport: the one way to other processes. One-sided writes, signals, and one ordering promise.
// Floor: transport (sees base and memory). Implementations do not see each other.
//
// THE PROMISE: when a signal is seen (its line's counter has the value), every put issued before it
// to the same peer on the same channel is seen too, and so is the signal's header. Nothing else is
// ordered: not puts among themselves, not channels, not peers. Nobody polls data bytes.
//
// Threads: the set-up verbs may block until their deadline and may run in any thread beside the
// data verbs. The data verbs and arm() belong to one driver at a time and never block or allocate.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/limits.h"
#include "csrc/base/status.h"
#include "csrc/memory/region.h"
#include "csrc/memory/shared_segment.h"

namespace rdmacoll {

using PeerId = uint32_t;  // a process this transport has met; small, given by connect()

// What a signal leaves in the receiver's memory: one cache line, the counter stored last.
struct alignas(kLineBytes) Line {
  std::atomic<uint64_t> counter;
  uint32_t signature;  // of the operation the sender is in; what must be equal on both ends
  uint32_t bytes;      // of the message it announces
  std::byte inline_data[kInlineBytes];
  uint32_t credit;  // Header's
};
static_assert(sizeof(Line) == kLineBytes);

struct Header {
  uint32_t signature = 0;
  uint32_t bytes = 0;
  uint32_t inline_bytes = 0;  // how much of inline_data counts
  alignas(8) std::byte inline_data[kInlineBytes];
  // Messages of the receiver that the sender has consumed, mod 2^32. A line may be taken long after
  // it was written, when many more have been: a byte would take an old number for a new one.
  uint32_t credit = 0;
};

struct Ticket {
  uint64_t value = 0;
};

using ShortKey = std::array<std::byte, 16>;  // opaque

enum class Posted : uint8_t {
  Done,     // the source may be reused now
  Pending,  // the ticket says when
  Full,     // nothing was posted; come again after poll()
};

// What set-up has cost so far. The steady state adds nothing to it.
struct TransportCounters {
  uint64_t registrations = 0;  // of memory with a device
  // Handshakes, goodbyes, notices, room; not what asks, once a second, whether a silent peer lives.
  uint64_t control_messages = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;
  // For people: over what it goes, "" where the name says it all.
  virtual std::string describe() const { return ""; }
  // Peers map() regions; one that is registered takes no memory until it is touched. Then what this
  // process stores there after a signal to a peer is not seen by it before that signal.
  virtual bool shares_memory() const { return false; }
  virtual TransportCounters counters() const { return {}; }

  // --- set-up ---------------------------------------------------------------------------------
  // How others reach this process; opaque, under 1 KiB, the same for the life of the transport.
  virtual std::string local_card() const = 0;
  // Meets the process behind a card; both sides must call it before their deadlines. The same card
  // gives the same PeerId. Unsupported: this transport does not reach that process.
  virtual Result<PeerId> connect(const std::string& card, Deadline deadline) = 0;
  // Whether the process behind the card waits for this one in connect(), as far as is heard.
  virtual bool called_by(const std::string& card) const = 0;
  // Lets peers reach zeroed memory under an id, new or reusable; the transport keeps the memory
  // until release_region().
  virtual Status register_region(RegionId region, std::shared_ptr<SharedSegment> memory) = 0;
  // Registers a part of memory under an id of the same kind. Puts can read from it from then on,
  // and peers that are told its short key can write to it. The transport keeps it for the rest of
  // its life. Does nothing where puts read from any memory and peers map what is shared.
  virtual Status register_part(RegionId, std::shared_ptr<SharedSegment>, uint64_t /*offset*/,
                               uint64_t /*bytes*/) {
    return Status();
  }
  // What a peer needs to open the region; opaque, under 256 bytes.
  virtual std::string region_key(RegionId region) const = 0;
  // Lets `peer` open a region of mine, once; the other side's open_region() waits for it.
  virtual Status offer_region(PeerId peer, RegionId region) = 0;
  // Opens a peer's region by its key. From then on its slices may be put to, and its lines
  // signalled. PeerFailed: its owner has withdrawn it.
  virtual Status open_region(PeerId peer, const std::string& key, Deadline deadline) = 0;
  // The size in bytes of a peer's region that is open, or 0 if it is not. Bounds every offset that
  // the peer sends.
  virtual uint64_t opened_bytes(PeerId peer, RegionId region) const = 0;
  // The owner is told, after everything that this process did to the region.
  virtual void close_region(PeerId peer, RegionId region) = 0;
  // Before release_region(): peers that have not opened it cannot do so any more. Without this they
  // still can, and the id stays taken until they have opened and closed it.
  virtual void withdraw_region(RegionId region) = 0;
  // The memory stays until no living peer can write to it.
  virtual void release_region(RegionId region) = 0;
  // Whether the id of a released region can be registered anew: every peer that it was offered to
  // has closed it, cannot open it, or is gone, and nothing of the old use can still come. A peer
  // that is stopped may hold it for ever.
  virtual bool is_reusable(RegionId region) = 0;

  // --- data -----------------------------------------------------------------------------------
  // The local slice lies in a region of mine.
  virtual Posted put(PeerId peer, uint8_t channel, LocalSlice source, RemoteSlice destination,
                     Ticket* ticket) = 0;
  // The peer may be writing there: eight bytes that it stores as one, and aligned, come as one.
  virtual Posted get(PeerId peer, uint8_t channel, RemoteSlice source, LocalSlice destination,
                     Ticket* ticket) = 0;
  // Stores header and counter in a line of the peer. The value must be larger than the one before.
  virtual Posted signal(PeerId peer, uint8_t channel, RemoteSlice line, uint64_t counter,
                        const Header& header) = 0;
  virtual bool done(Ticket ticket) = 0;
  virtual void poll() = 0;

  // The key of a part that is registered, short enough to tell it by a signal when it is needed;
  // false: peers cannot put there.
  virtual bool short_key(RegionId /*part*/, ShortKey* /*key*/) const { return false; }
  // Whether a peer's part can be put to from now on. The first time may lock and allocate.
  virtual bool open_by_short_key(PeerId, RegionId /*part*/, const ShortKey&) { return false; }

  // --- sleep ----------------------------------------------------------------------------------
  // After arm(), a later signal or failure of a peer, or wake(), makes the descriptor readable. The
  // caller looks once more for what it waits for, polls the descriptor, then calls disarm().
  virtual int arm() = 0;
  virtual void disarm() = 0;
  virtual void wake() = 0;  // any thread

  // --- reach ----------------------------------------------------------------------------------
  // The peer's region in this address space, or nullptr. Valid until close_region().
  virtual std::byte* map(PeerId peer, RegionId region) = 0;

  // --- end ------------------------------------------------------------------------------------
  // Ok while the peer lives; else PeerFailed with what is known. Cheap; any thread.
  virtual Status peer_status(PeerId peer) const = 0;
  // After it nothing of the peer lands in this process, whenever it was issued, and nothing on its
  // way to the peer is read here any more; the peer has failed, here at once, there in time.
  virtual Status fence(PeerId peer, Deadline deadline) = 0;
  // Leaves; peers see PeerFailed from then on.
  virtual void shutdown() = 0;
};

}  // namespace rdmacoll
