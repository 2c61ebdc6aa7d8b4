// VerbsPair: two verbs transports on an emulated network, each on a device of its own ("fake0",
// "fake1"), that have met and opened a region of each other; one thread drives both.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "csrc/transport/verbs/transport.h"
#include "tests/contract/make_region.h"
#include "tests/fake_verbs/network.h"

namespace rdmacoll {

// Real time that a test can push forward, where the transport does something each second.
class PushedClock final : public Clock {
 public:
  int64_t now_ns() const override { return steady_.now_ns() + ahead_ns_.load(); }
  void push_ms(int64_t ms) { ahead_ns_ += ms * 1'000'000; }

 private:
  const SteadyClock steady_;
  std::atomic<int64_t> ahead_ns_{0};
};

struct VerbsPairOptions {
  uint64_t seed = 1;
  int64_t queue_pairs = 1;
  uint64_t region_bytes = 1 << 16;
};

fake::NetworkSpec two_devices(uint64_t seed);
Config on_device(int number);
struct VerbsPair {
  explicit VerbsPair(VerbsPairOptions options = VerbsPairOptions());
  // Nothing is left open, and no message found its receiver not ready.
  ~VerbsPair();

  VerbsTransport& at(int rank) const { return *transport[rank]; }
  void poll();
  // Polls both until it holds; false when that takes too long.
  bool until(const std::function<bool()>& holds);

  Posted put(int from, uint64_t bytes, uint64_t source, uint64_t destination, Ticket* ticket) {
    return at(from).put(peer[from], 0, {region[from].base + source, bytes, region[from].id},
                        {region[1 - from].id, destination, bytes}, ticket);
  }
  Posted signal(int from, uint64_t counter, uint64_t line = 0) {
    return at(from).signal(peer[from], 0, {region[1 - from].id, line * kLineBytes, kLineBytes},
                           counter, Header());
  }
  uint64_t counter(int rank, uint64_t line = 0) const {
    return reinterpret_cast<Line*>(region[rank].base + line * kLineBytes)
        ->counter.load(std::memory_order_acquire);
  }
  Status status(int rank) const { return at(rank).peer_status(peer[rank]); }

  PushedClock clock;
  fake::FakeNetwork network;
  std::unique_ptr<VerbsTransport> transport[2];
  MadeRegion region[2];
  PeerId peer[2] = {};  // the other's
};

}  // namespace rdmacoll
