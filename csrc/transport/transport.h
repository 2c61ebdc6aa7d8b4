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
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/check.h"
#include "csrc/base/clock.h"
#include "csrc/base/limits.h"
#include "csrc/base/published.h"
#include "csrc/base/status.h"
#include "csrc/memory/region.h"
#include "csrc/memory/shared_segment.h"
#include "csrc/transport/update.h"

namespace rdmacoll {

using PeerId = uint32_t;  // a process this transport has met; small, given by connect()

// What a signal leaves in the receiver's memory: one cache line, the counter stored last.
struct alignas(kLineBytes) Line {
  std::atomic<uint64_t> counter;
  uint32_t signature;  // of the operation the sender is in; what must be equal on both ends
  // Of the message that it announces: its length, and with it what the engine packs there (in a
  // collective, the low bits of its number: executor.cc).
  uint32_t length_and_sequence;
  std::byte inline_data[kInlineBytes];
  uint32_t credit;  // Header's
};
static_assert(sizeof(Line) == kLineBytes);

struct Header {
  uint32_t signature = 0;
  uint32_t length_and_sequence = 0;
  uint32_t inline_bytes = 0;  // how much of inline_data counts
  alignas(8) std::byte inline_data[kInlineBytes];
  // Messages of the receiver that the sender has consumed, mod 2^32. A line may be taken long after
  // it was written, when many more have been: a byte would take an old number for a new one.
  uint32_t credit = 0;
};

// Into memory of this process: what a signal leaves.
inline void store(Line& line, uint64_t counter, const Header& header) {
  line.signature = header.signature;
  line.length_and_sequence = header.length_and_sequence;
  std::memcpy(line.inline_data, header.inline_data, header.inline_bytes);
  line.credit = header.credit;
  line.counter.store(counter, std::memory_order_release);
}

// Of a put, get or update that is Pending: its number, and up to which number its transport is
// done. A new one is done.
class Ticket {
 public:
  Ticket() = default;
  Ticket(const std::atomic<uint64_t>& done_up_to, uint64_t number)
      : done_up_to_(&done_up_to), number_(number) {}
  // After poll(). A put is done when its source may be reused, a get or an update when the bytes
  // are here, and all when the peer has ended.
  bool done() const {
    return done_up_to_ == nullptr || done_up_to_->load(std::memory_order_acquire) >= number_;
  }

 private:
  const std::atomic<uint64_t>* done_up_to_ = nullptr;  // lives as long as the transport
  uint64_t number_ = 0;
};

enum class Posted : uint8_t {
  Done,     // the source may be reused now
  Pending,  // the ticket says when
  Full,     // nothing was posted; come again after poll()
};

// What a transport is. It stays the same for the transport's life.
struct TransportInfo {
  std::string name;
  std::string device{};   // for people: over what it goes; "" where the name says it all
  std::string address{};  // how others reach this process; opaque, under 1 KiB
  // Peers' regions that are open lie in this address space; one that is registered takes no memory
  // until it is touched. Then what this process stores in a peer's region after a signal to the
  // peer is not seen by it before that signal.
  bool shares_memory = false;
  // Readable while something has come that only poll() takes (a socket set, for one): the process
  // must be driven for its peers' sake. -1: peers need no help of this process.
  int attention_fd = -1;
  // Readable while serve() has something to do. -1: nothing ever comes of which connect() and
  // open_region() do not hear themselves.
  int set_up_fd = -1;
  // Puts may read any memory of this process, and begin_placement() lends any of it to a peer:
  // nothing has to be registered.
  bool any_memory = false;
  // It has update().
  bool has_updates = false;
  // Processes with equal ones map each other's memory, whoever asks whom; "": nobody's is mapped,
  // as far as this process knows. Some may map although theirs differ, which costs them speed
  // alone; none may be equal in vain, as such a pair can be in no group (group_setup.cc). Opaque,
  // printable, under 64 bytes.
  std::string island{};
};

// What set-up has cost so far. The steady state adds nothing to it.
struct TransportCounters {
  uint64_t registrations = 0;  // of memory with a device
  // Handshakes, goodbyes, notices, room; not what asks, once a second, whether a silent peer lives.
  uint64_t control_messages = 0;
};

inline constexpr uint64_t kBulkBytes = 64 * 1024;  // see get()

// What peers may do in a region.
enum class Access : uint8_t {
  Full,  // put, get, signal and update
  // Puts alone, for as long as the transport lives. Its key has kShortKeyBytes, so that a signal
  // can carry it.
  PutOnly,
  // Gets alone. Its segment is one that others cannot write to (shared_segment.h). Who puts there
  // all the same changes nothing in it, and loses this process.
  ReadOnly,
};
constexpr bool takes_signals(Access access) { return access == Access::Full; }
constexpr bool takes_updates(Access access) { return access == Access::Full; }
constexpr bool takes_puts(Access access) { return access != Access::ReadOnly; }
constexpr bool takes_gets(Access access) { return access != Access::PutOnly; }
constexpr bool has_short_key(Access access) { return access == Access::PutOnly; }
inline constexpr size_t kShortKeyBytes = 20;

// Memory of this process that becomes a region: all of a segment, or a part of it.
struct RegionMemory {
  std::shared_ptr<SharedSegment> segment;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  Access access = Access::Full;

  std::byte* base() const { return segment->data() + offset; }
  static RegionMemory all_of(std::shared_ptr<SharedSegment> segment, Access access = Access::Full) {
    const uint64_t bytes = segment->bytes();
    return {std::move(segment), 0, bytes, access};
  }
};

// Memory of this process that a peer may put into for a while. The key opens it there.
struct Placement {
  static constexpr uint32_t kNone = ~0u;
  uint32_t id = kNone;
  std::array<char, kShortKeyBytes> key{};  // zeros: none

  bool is_given() const { return id != kNone; }
};

// A region that a peer has offered with a note, or the note alone.
struct RegionOffer {
  PeerId peer = 0;
  uint64_t note = 0;            // what it means is known to those who offer; never 0 here
  RegionId region = kNoRegion;  // kNoRegion: the note came alone
  std::string key{};            // opens the region, as register_region() returned it
};
inline constexpr uint64_t kNoNote = 0;

// What serve() hands over.
struct SetUpReport {
  std::vector<RegionOffer> offers;  // with a note, in the order in which each peer made them
  // Of processes that call this one, or are there now that it has called them, and that connect()
  // has not met since: by these addresses it meets them. In parts they may say less than theirs.
  std::vector<std::string> callers;
};

// What becomes of peers that were offered a region that is released and have not opened it.
enum class Release : uint8_t {
  Keep,      // they still can open it, and its id stays taken until they have closed it
  Withdraw,  // they cannot open it any more
};

class Transport {
 public:
  // Leaves; peers see PeerFailed from then on. Nobody uses the transport any more.
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  const TransportInfo& info() const { return info_; }
  TransportCounters counters() const {
    return {registrations_.load(std::memory_order_relaxed),
            control_messages_.load(std::memory_order_relaxed)};
  }
  // Ok while the peer lives; else PeerFailed with what is known. Cheap; any thread.
  Status peer_status(PeerId peer) const {
    const Status* end = ends_.at(peer);
    return end == nullptr ? Status() : *end;
  }

  // The next poll() looks at the clock. For who knows that time has passed, when few may have
  // polled. Any thread.
  void note_time() { time_has_passed_.store(true, std::memory_order_relaxed); }

  // --- set-up ---------------------------------------------------------------------------------
  // Meets the process of an address; both sides must call it before their deadlines. With a
  // deadline that has passed it looks once and does not wait: Timeout says that the two have not
  // met yet, and what has begun goes on at the next call, or in serve(). The same address gives the
  // same PeerId. Unsupported: this transport does not reach that process.
  virtual Result<PeerId> connect(const std::string& address, Deadline deadline) = 0;
  // Whether the process of the address has called this one by connect(), as far as is heard.
  virtual bool called_by(const std::string& address) const = 0;
  // Goes on with what connect() and callers have begun, and appends what has come since the last
  // call. Never waits; any thread, beside the driver. A caller is reported once, and again when it
  // calls anew. Its first offer may come with the report of it.
  virtual void serve(SetUpReport& report) = 0;
  // Lets peers reach zeroed memory under an id, new or reusable; puts can read from it and gets
  // write to it. The transport keeps the memory until release_region(). Returns the key with which
  // a peer opens the region: opaque, under 256 bytes.
  virtual Result<std::string> register_region(RegionId region, const RegionMemory& memory) = 0;
  // Lets `peer` open a region of mine, once; the other side's open_region() waits for it. Not
  // needed for one with a short key. With a note, of a region with a long key: the peer's serve()
  // hands over key and note, in the order of these calls; where bytes move in poll() alone, the
  // next one sends them. kNoRegion: the note goes alone. A peer that leaves thousands untaken is
  // offered too much, and gives this process up.
  virtual Status offer_region(PeerId peer, RegionId region, uint64_t note) = 0;
  // Opens a peer's region by its key. From then on its slices may be put to, and its lines
  // signalled. Returns its id and its size, which bounds every offset that the peer sends, and
  // where it is mapped until close_region(), if it is. One that is open is returned as it is; with
  // a short key this neither waits nor, but for the first time, allocates. PeerFailed: its owner
  // has withdrawn it.
  virtual Result<Region> open_region(PeerId peer, std::string_view key, Deadline deadline) = 0;
  // The owner is told, after everything that this process did to the region. With a key: of that
  // use of the id alone, be it open, or offered with a note and not to be opened. Its owner may
  // have taken that back meanwhile, and offered other memory under the same id.
  virtual void close_region(PeerId peer, RegionId region, std::string_view key = {}) = 0;
  // The driver, of a region that is released next. From now on nothing that a peer puts lands in
  // its memory, whenever it was issued; who still puts there may lose this process. No put or get
  // of this process uses it. Where peers map it this does nothing: there its pages were changed for
  // fresh ones before (SharedSegment::take_place_of).
  virtual void cut_off_region(RegionId region) = 0;
  // The memory stays until no living peer can write to it.
  virtual void release_region(RegionId region, Release how) = 0;
  // Whether the id of a released region can be registered anew: every peer that it was offered to
  // has closed it, cannot open it, or is gone, and nothing of the old use can still come. A peer
  // that is stopped may hold it for ever.
  virtual bool is_reusable(RegionId region) = 0;

  // --- data -----------------------------------------------------------------------------------
  // The local slice lies in a region of mine.
  virtual Posted put(PeerId peer, uint8_t channel, LocalSlice source, RemoteSlice destination,
                     Ticket* ticket) = 0;
  // The peer may be writing there: eight bytes that it stores as one, and aligned, come as one, in
  // a get of fewer than kBulkBytes.
  virtual Posted get(PeerId peer, uint8_t channel, RemoteSlice source, LocalSlice destination,
                     Ticket* ticket) = 0;
  // Changes a word of the peer, which is aligned, in one step: no other update comes between,
  // whoever makes it and over whichever transport with updates. What was there before lands here.
  // Puts there, and what the peer itself stores, do not respect it; who reads the word sees it
  // whole. It is not ordered with anything else. If the peer ends meanwhile, it may have been
  // made. Of transports with updates alone.
  virtual Posted update(PeerId, uint8_t, RemoteSlice, const Update&, LocalSlice, Ticket*) {
    RDMACOLL_CHECK(info_.has_updates);
    return Posted::Full;
  }
  // Stores header and counter in a line of the peer. The value must be larger than the one before.
  virtual Posted signal(PeerId peer, uint8_t channel, RemoteSlice line, uint64_t counter,
                        const Header& header) = 0;
  virtual void poll() = 0;
  // Lends memory to a peer, which may put into it until end_placement(). None: not now; of
  // transports with any_memory alone.
  virtual Placement begin_placement(PeerId, std::byte*, uint64_t) { return {}; }
  // From now on nothing lands there, whenever the peer has sent it.
  virtual void end_placement(const Placement&) {}

  // --- sleep ----------------------------------------------------------------------------------
  // After arm(), a later signal or failure of a peer makes the descriptor readable. The caller
  // looks once more for what it waits for, polls the descriptor, then calls disarm().
  virtual int arm() = 0;
  virtual void disarm() = 0;

  // --- end ------------------------------------------------------------------------------------
  // After it nothing of the peer lands in this process, whenever it was issued, and nothing on its
  // way to the peer is read here any more; the peer has failed, here at once, there in time.
  virtual Status fence(PeerId peer, Deadline deadline) = 0;

 protected:
  Transport() = default;

  void set_info(TransportInfo info) { info_ = std::move(info); }
  // What peer_status() says from now on. Only the first end of a peer counts; one thread at a time.
  void note_end(PeerId peer, Status why) {
    if (ends_.at(peer) == nullptr) ends_.set(peer, std::make_unique<Status>(std::move(why)));
  }
  // Whether note_time() was called since this was last true. The driver.
  bool has_time_passed() {
    return time_has_passed_.load(std::memory_order_relaxed) &&
           time_has_passed_.exchange(false, std::memory_order_relaxed);
  }
  void count_registration() { registrations_.fetch_add(1, std::memory_order_relaxed); }
  void count_control_message() { control_messages_.fetch_add(1, std::memory_order_relaxed); }

 private:
  TransportInfo info_;
  Published<Status, kMaxPeers> ends_;
  std::atomic<bool> time_has_passed_{false};
  std::atomic<uint64_t> registrations_{0};
  std::atomic<uint64_t> control_messages_{0};
};

}  // namespace rdmacoll
