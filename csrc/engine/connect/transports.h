// Transports: those that this process has open, and which of them reaches whom. Meeting a process
// chooses; from then on its path is used as it is, so the data path has no choice to make.
// Floor: engine/connect. Thread: any; what transport.h says of its verbs holds.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/engine/channel/heap.h"
#include "csrc/engine/connect/path.h"
#include "csrc/engine/connect/tagged_fields.h"
#include "csrc/engine/connect/transport_table.h"
#include "csrc/memory/region.h"
#include "csrc/transport/this_process.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

// How long one is not answered in a transport before one looks whether the peer calls over a later
// one (look()'s for_calls).
inline constexpr int64_t kLookForCallsNs = 150'000'000;

// How two processes come to the same choice. Both go through the transports that both have open, in
// the same order, and connect over the first that does not answer Unsupported. Most know that at
// once (another host, another kind of network); but one may learn by a handshake that only it sees
// refused. It goes on to the next transport and calls from there: so whoever is not answered in one
// transport looks now and then whether the peer calls over a later one, and follows.
class Transports {
 public:
  // Where this process runs.
  struct Host {
    std::string id;    // equal for all processes of one host, and only for them
    std::string name;  // for people
  };

  // Opens what config.transport asks for: auto opens what there is. The clock outlives this and
  // runs in real time.
  static Result<std::unique_ptr<Transports>> open(const Config& config, const Clock& clock,
                                                  std::shared_ptr<Heap> heap,
                                                  const ThisProcess& process);
  // Those given, the best first; they and the clock outlive this. There is no heap yet.
  Transports(std::vector<Transport*> transports, Host host, const Config& config,
             const Clock& clock);
  Transports(const Transports&) = delete;
  Transports& operator=(const Transports&) = delete;
  ~Transports();

  // Those that a driver must poll: peers have been met over them. Only grows.
  std::span<Transport* const> in_use() const {
    return {used_.data(), used_count_.load(std::memory_order_acquire)};
  }
  // Is told when there is one more; not while this is in use.
  void when_used(std::function<void()> told) { told_.used = std::move(told); }
  TransportCounters counters() const;

  // --- this process ---------------------------------------------------------------------------
  // How others reach it, over any transport.
  std::string local_address() const;
  // From the address of any process, this one's own, too: its island (TransportInfo) in the
  // transport that shares memory. "": it has none open, or the address is no address.
  static std::string island_of(const std::string& address);
  // Whether that process is of this host.
  bool is_here(const std::string& address) const;
  // Whether that process, of another host, has open what is required between hosts, as this one.
  Status check_required(const std::string& address) const;
  // Zeroed memory under an id of its own, for every transport that can reach into it; the reasons
  // of the others are kept for whoever needs them (transports_regions.cc). Where all ids are taken
  // it waits a while for one that peers are about to give back.
  Result<Region> create_region(uint64_t bytes);
  // The same of memory that is there.
  Result<Region> add_region(const RegionMemory& memory);
  std::string region_key(RegionId region) const;
  // Transport::cut_off_region() of all of them.
  void cut_off_region(RegionId region);
  void release_region(RegionId region, Release how);
  // What makes the driver do a round, for create_region() to call while it waits. Without it that
  // does not wait.
  void drive_by(std::function<void()> drive) { told_.drive = std::move(drive); }
  // Makes the heap known to all transports, and to others by the address: before anything else.
  Status adopt_heap(std::shared_ptr<Heap> heap);
  // nullptr: there is none.
  Heap* heap() const { return heap_.get(); }

  // --- others ---------------------------------------------------------------------------------
  // One look at whether the process of an address is met, over the first transport that reaches it,
  // or over this one alone. Timeout: not yet; what has begun goes on at the next look, on both
  // sides. Unsupported says of each transport why it does not reach it. for_calls: look also
  // whether the process calls over a later transport, as one does now and then.
  Result<Path> look(const std::string& address, bool for_calls, const Transport* over = nullptr);
  // What a process has offered with a note (transport.h).
  struct Offer : RegionOffer {
    Transport* transport = nullptr;
  };
  // A process that calls (SetUpReport), by its address in the transport over which it does.
  struct Caller {
    Transport* transport = nullptr;
    std::string address;

    auto operator<=>(const Caller&) const = default;
  };
  struct Report {
    std::vector<Offer> offers;
    std::vector<Caller> callers;
  };
  // Transport::serve() of all of them.
  void serve(Report& report);
  // One look at whether it is met. Timeout: not yet.
  Status meet(const Caller& caller);
  // Readable while serve() has something to do.
  std::vector<int> set_up_fds() const;
  Status offer_region(const Path& path, RegionId region, uint64_t note);
  Result<Region> open_region(const Path& path, const std::string& key, Deadline deadline);
  // Of a peer's region_key() what opens it over this path, or why its memory is not reached so.
  Result<std::string> key_over(const Path& path, const std::string& key) const;
  // Lets the peer map my heap, if the path's transport shares memory; the other side's open_heap()
  // waits for it.
  Status offer_heap(const Path& path);
  // Whether my heap is small enough for the peer to map.
  bool heap_is_mapped_by(const Path& path) const;
  // The peer's heap in this address space. Empty where the peer has none or does not share it, and
  // where it is too large for this process to map (heap_size.h), of which the log warns once.
  Result<std::span<const std::byte>> open_heap(const Path& path, Deadline deadline);

 private:
  Status open_row(const TransportRow& row, const Config& config, const ThisProcess& process);
  void add(Transport* transport);
  void use(Transport* transport);

  Result<Path> choose(const TaggedFields& address, bool for_calls, const Transport* over) const;
  Status unreachable(const TaggedFields& address, std::string passed_over) const;
  Result<PeerId> connect_over(size_t index, const TaggedFields& address, bool for_calls) const;
  // The key of a region of mine for one transport, or why that cannot reach the region.
  Result<std::string> key_for(const Transport* transport, RegionId region) const;
  Result<RegionId> new_region();
  std::optional<RegionId> free_region();  // under the mutex
  void register_heap_with(Transport& transport);
  std::string heap_field() const;
  std::string largest_heap_field() const;
  void warn_of_heap(uint64_t bytes);

  const Host host_;
  const std::string setting_;  // RDMACOLL_TRANSPORT
  const std::string require_;  // RDMACOLL_REQUIRE
  const Clock& clock_;
  const Log log_;
  std::shared_ptr<Heap> heap_;
  uint64_t largest_peer_heap_ = UINT64_MAX;
  std::vector<std::unique_ptr<Transport>> owned_;
  std::vector<Transport*> transports_;         // the best first
  std::map<std::string, std::string> absent_;  // why one is not open, by name

  // What is told: to do a round, that one more is in use.
  struct Told {
    std::function<void()> drive;
    std::function<void()> used;
  };
  Told told_;

  std::array<Transport*, kMaxTransports> used_{};
  std::atomic<size_t> used_count_{0};

  mutable std::mutex mutex_;           // what follows
  std::map<std::string, Path> known_;  // by address
  RegionId next_region_ = 0;           // never used so far
  std::deque<RegionId> released_{};    // to be reused when all are done with them, the oldest first
  // Of each region of mine, until its id is reused: its keys, or why there are none, by transport.
  std::map<RegionId, std::vector<Result<std::string>>> keys_;
  std::set<std::pair<Transport*, PeerId>> offered_heap_;  // to whom
  bool warned_of_heaps_ = false;
};

}  // namespace rdmacoll
