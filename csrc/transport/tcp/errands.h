// Errands: what any thread leaves for the driver to do now and then, and when it looks for that.
// Floor: transport/tcp. Thread: note() any; notices and released under the transport's mutex; the
// rest the driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "csrc/memory/region.h"
#include "csrc/transport/lease.h"
#include "csrc/transport/tcp/connection/frame.h"
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

// To be said to a peer of a region.
struct Notice {
  PeerId peer;
  FrameKind kind;
  RegionId region;
  Generation generation;
};

class Errands {
 public:
  std::vector<Notice> notices;
  std::vector<RegionId> released;  // mine, and not yet forgotten

  // Something is to be done.
  void note() { due_.store(true, std::memory_order_relaxed); }

  // Asked once a poll: whether something is to be done, or the clock to be looked at.
  bool is_time_to_look() {
    return due_.load(std::memory_order_relaxed) || ++polls_ % kPollsPerClock == 0;
  }
  // Whether something is to be done; it is the caller's from here on.
  bool take() { return due_.exchange(false); }
  // Whether so long has passed since this was last true.
  bool is_time_for_silence(int64_t now_ns, int64_t every_ns) {
    if (now_ns < next_look_ns_) return false;
    next_look_ns_ = now_ns + every_ns;
    return true;
  }

 private:
  static constexpr uint32_t kPollsPerClock = 32;

  std::atomic<bool> due_{false};
  uint32_t polls_ = 0;
  int64_t next_look_ns_ = 0;
};

}  // namespace rdmacoll::tcp
