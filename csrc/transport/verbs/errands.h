// Errands: what any thread leaves for the driver to do now and then, and when it looks for that.
// Floor: transport/verbs. Thread: note() any; notices and released under the transport's mutex; the
// rest the driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "csrc/memory/region.h"
#include "csrc/transport/transport.h"
#include "csrc/transport/verbs/connection/wire.h"

namespace rdmacoll::verbs {

// To be sent to a peer.
struct Notice {
  PeerId peer;
  uint32_t kind;  // Immediate's
  RegionNotice about;
  std::optional<Ticket> follows{};  // must be done before
};

class Errands {
 public:
  std::vector<Notice> notices;
  std::vector<RegionId> released;  // mine, and not yet deregistered

  // Something is to be done.
  void note() { due_.store(true, std::memory_order_relaxed); }

  // Asked once a poll: whether something is to be done, or the clock to be looked at.
  bool is_time_to_look() {
    return due_.load(std::memory_order_relaxed) || ++polls_ % kPollsPerClock == 0;
  }
  // Whether something is to be done; it is the caller's from here on.
  bool take() { return due_.exchange(false); }
  // Whether so long has passed since this was last true.
  bool is_time_to_probe(int64_t now_ns, int64_t every_ns) {
    if (now_ns < next_probe_ns_) return false;
    next_probe_ns_ = now_ns + every_ns;
    return true;
  }

 private:
  static constexpr uint32_t kPollsPerClock = 64;

  std::atomic<bool> due_{false};
  uint32_t polls_ = 0;
  int64_t next_probe_ns_ = 0;
};

}  // namespace rdmacoll::verbs
