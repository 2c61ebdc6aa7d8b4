// Errands: what any thread of a transport leaves for its driver to do now and then: to tell peers
// about regions, and to offer them, and to forget those that are released; and when the driver
// looks for that. Floor: transport. Thread: note() any; is_time_to_look(), take() and
// is_time_again() the driver; the rest under the transport's mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "csrc/base/check.h"
#include "csrc/memory/region.h"
#include "csrc/transport/lease.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

// To be said to a peer, behind all else that this process does with its memory.
struct Notice {
  enum class Kind : uint8_t {
    Closed,     // this process is done with a region of the peer
    Withdrawn,  // it takes back one of its own
    Offered,    // it offers one of its own, or kNoRegion, with a note
  };
  PeerId peer;
  Kind kind;
  RegionId region;
  Generation generation;
  uint64_t note = kNoNote;
  std::optional<Ticket> follows{};  // must be done before; for transports that keep no order
};

class Errands {
 public:
  std::vector<Notice> notices;
  std::vector<RegionId> released;  // mine, and not yet forgotten

  // Something is to be done.
  void note() { due_.store(true, std::memory_order_relaxed); }
  void say_closed(PeerId peer, RegionId region, Generation generation) {
    notices.push_back({peer, Notice::Kind::Closed, region, generation});
    note();
  }
  void say_offered(PeerId peer, RegionId region, Generation generation, uint64_t with_note) {
    notices.push_back({peer, Notice::Kind::Offered, region, generation, with_note});
    note();
  }
  // A region of this process, with or without a note; of kNoRegion, which is nullptr, the note.
  template <typename OwnRegion>
  void offer(PeerId peer, RegionId id, OwnRegion* region, uint64_t with_note) {
    Generation generation = 0;
    if (id == kNoRegion) {
      RDMACOLL_CHECK(with_note != kNoNote);
    } else {
      RDMACOLL_CHECK(region != nullptr && !region->lease.released);
      RDMACOLL_CHECK(!has_short_key(region->access) || with_note == kNoNote);
      region->lease.offered(peer);
      generation = region->lease.generation;
    }
    if (with_note != kNoNote) say_offered(peer, id, generation, with_note);
  }
  void release(RegionId region, Lease& lease, Release how) {
    lease.released = true;
    released.push_back(region);
    if (how == Release::Withdraw) {
      for (const PeerId reader : lease.readers) {
        notices.push_back({reader, Notice::Kind::Withdrawn, region, lease.generation});
      }
    }
    note();
  }

  // Asked once a poll: whether something is to be done, or the clock to be looked at.
  bool is_time_to_look() {
    return due_.load(std::memory_order_relaxed) || ++polls_ % kPollsPerClock == 0;
  }
  // Whether something is to be done; it is the caller's from here on.
  bool take() { return due_.exchange(false); }
  // Whether so long has passed since this was last true.
  bool is_time_again(int64_t now_ns, int64_t every_ns) {
    if (now_ns < next_time_ns_) return false;
    next_time_ns_ = now_ns + every_ns;
    return true;
  }

 private:
  static constexpr uint32_t kPollsPerClock = 64;

  std::atomic<bool> due_{false};
  uint32_t polls_ = 0;
  int64_t next_time_ns_ = 0;
};

}  // namespace rdmacoll
