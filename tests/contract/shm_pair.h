// ShmPair: two shm transports of this process that have met and opened a region of each other. And
// a process that says nothing.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "csrc/transport/shm/transport.h"
#include "tests/contract/make_region.h"

namespace rdmacoll {

inline std::unique_ptr<ShmTransport> open_shm(const Clock& clock, const Config& config = Config()) {
  auto opened = ShmTransport::open(config, clock, ThisProcess::make().take());
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return opened.take();
}

inline bool readable(int fd, int timeout_ms) {
  pollfd waited{fd, POLLIN, 0};
  return ::poll(&waited, 1, timeout_ms) == 1;
}

// A process that listens and says nothing. Its id is smaller than that of others: it is to dial.
struct SilentProcess {
  static ProcessId small_id() {
    ProcessId id = random_process_id().take();
    std::fill_n(id.begin(), 4, uint8_t{0});
    return id;
  }
  const ProcessId id = small_id();
  const SoleFd listener = PeerSocket::listen(socket_name(id)).take();
};

struct ShmPair {
  explicit ShmPair(uint64_t region_bytes = 4096) {
    for (int i = 0; i < 2; ++i) {
      transport[i] = open_shm(clock);
      region[i] = make_region(*transport[i], 0, region_bytes).take();
    }
    const Deadline deadline = Deadline::after_ms(clock, 20'000);
    const auto meet = [&](int i) {
      ShmTransport& mine = *transport[i];
      const std::string address = transport[1 - i]->info().address;
      Result<PeerId> met = mine.connect(address, deadline);
      EXPECT_TRUE(met.ok()) << met.status().message();
      peer[i] = met.value();
      EXPECT_TRUE(mine.offer_region(peer[i], region[i].id, kNoNote).ok());
      Result<Region> opened = mine.open_region(peer[i], region[1 - i].key, deadline);
      EXPECT_TRUE(opened.ok()) << opened.status().message();
      mapped[i] = opened.value().base;
    };
    std::thread other(meet, 1);
    meet(0);
    other.join();
  }

  void signal(int from, uint64_t counter, uint64_t line = 0) {
    transport[from]->signal(peer[from], 0, {region[1 - from].id, line * kLineBytes, kLineBytes},
                            counter, Header());
  }
  uint64_t counter(int at) const {
    return reinterpret_cast<Line*>(region[at].base)->counter.load(std::memory_order_acquire);
  }

  SteadyClock clock;
  std::unique_ptr<ShmTransport> transport[2];
  MadeRegion region[2];
  PeerId peer[2] = {};        // the other's
  std::byte* mapped[2] = {};  // the other's region
};

}  // namespace rdmacoll
