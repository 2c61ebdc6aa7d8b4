// TcpPair: two tcp transports of this process that have met over loopback and opened a region of
// each other; one thread drives both.
// Floor: tests. Thread: one.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "csrc/transport/tcp/transport.h"
#include "tests/contract/make_region.h"

namespace rdmacoll {

struct TcpOptions {
  int64_t streams = 1;
  uint64_t region_bytes = 1 << 16;
  std::string secret = "the secret of the job";
};

inline Config tcp_on_loopback(const TcpOptions& options = TcpOptions()) {
  Config config;
  config.settings.set("RDMACOLL_SOCKET_IFNAME", "=lo");
  config.settings.set("RDMACOLL_TCP_STREAMS", std::to_string(options.streams));
  config.settings.set("RDMACOLL_TCP_TIMEOUT_MS", "1000");
  config.secret.text = options.secret;
  return config;
}

inline std::unique_ptr<TcpTransport> open_tcp(const Clock& clock,
                                              const TcpOptions& options = TcpOptions()) {
  auto opened = TcpTransport::open(tcp_on_loopback(options), clock, ThisProcess::make().take());
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return opened.take();
}

inline bool is_readable(int fd, int timeout_ms = 0) {
  pollfd waited{fd, POLLIN, 0};
  return ::poll(&waited, 1, timeout_ms) == 1;
}

// Polls until it holds; false when that takes too long.
inline bool tcp_until(const std::function<void()>& poll, const std::function<bool()>& holds,
                      int64_t timeout_ms = 20'000) {
  const SteadyClock clock;
  const Deadline deadline = Deadline::after_ms(clock, timeout_ms);
  while (!holds()) {
    if (deadline.passed(clock)) return false;
    poll();
    std::this_thread::yield();
  }
  return true;
}

// Both sides connect; as peers of each other.
inline void meet(TcpTransport& one, TcpTransport& other, PeerId* others_id, PeerId* ones_id) {
  const SteadyClock clock;
  const Deadline deadline = Deadline::after_ms(clock, 20'000);
  const auto connect = [&](TcpTransport& mine, const TcpTransport& theirs, PeerId* id) {
    Result<PeerId> met = mine.connect(theirs.info().address, deadline);
    EXPECT_TRUE(met.ok()) << met.status().message();
    *id = met.ok() ? met.value() : 0;
  };
  std::thread thread([&] { connect(other, one, ones_id); });
  connect(one, other, others_id);
  thread.join();
}

struct TcpPair {
  explicit TcpPair(const TcpOptions& options = TcpOptions()) {
    for (int i = 0; i < 2; ++i) {
      transport[i] = open_tcp(clock, options);
      region[i] = make_region(*transport[i], 0, options.region_bytes).take();
    }
    meet(*transport[0], *transport[1], &peer[0], &peer[1]);
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(transport[i]->offer_region(peer[i], 0, kNoNote).ok());
      EXPECT_TRUE(open(i, region[1 - i].key).ok());
    }
  }

  Status open(int rank, const std::string& key) {
    return at(rank).open_region(peer[rank], key, Deadline::after_ms(clock, 1'000)).status();
  }
  TcpTransport& at(int rank) const { return *transport[rank]; }
  void poll() {
    for (const auto& one : transport) {
      if (one != nullptr) one->poll();
    }
  }
  bool until(const std::function<bool()>& holds, int64_t timeout_ms = 20'000) {
    return tcp_until([this] { poll(); }, holds, timeout_ms);
  }
  // Until neither has anything to do.
  void settle() {
    const auto quiet = [this] {
      return !is_readable(at(0).info().attention_fd) && !is_readable(at(1).info().attention_fd);
    };
    for (int i = 0; i < 20; ++i) {
      poll();
      EXPECT_TRUE(until(quiet));
    }
  }

  Posted put(int from, uint64_t bytes, uint64_t source, uint64_t destination, Ticket* ticket) {
    return at(from).put(peer[from], 0, {region[from].base + source, bytes, region[from].id},
                        {region[1 - from].id, destination, bytes}, ticket);
  }
  Posted get(int to, uint64_t bytes, uint64_t source, uint64_t destination, Ticket* ticket) {
    return at(to).get(peer[to], 0, {region[1 - to].id, source, bytes},
                      {region[to].base + destination, bytes, region[to].id}, ticket);
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

  SteadyClock clock;
  std::unique_ptr<TcpTransport> transport[2];
  MadeRegion region[2];
  PeerId peer[2] = {};  // the other's
};

}  // namespace rdmacoll
