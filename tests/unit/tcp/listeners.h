// What may listen at an address of 127.0.0.0/8: nobody, somebody who takes no calls, one that says
// nothing, or another process. Floor: tests. Thread: one.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <vector>

#include "csrc/transport/tcp/network/sockets.h"
#include "tests/unit/tcp/ip_of.h"

namespace rdmacoll::tcp {

inline Listener listen_at_loopback(const std::string& ip = "127.0.0.1") {
  auto listener = listen_at(ip_of(ip), PortRange());
  EXPECT_TRUE(listener.ok()) << listener.status().message();
  return listener.take();
}

// A port where connections are refused.
inline Endpoint nobody() { return listen_at_loopback().at; }

// Where a connection is neither taken nor refused, as behind a firewall: the queue of its listener
// is full.
class BlackHole {
 public:
  BlackHole() : listener_(listen_at_loopback()) {
    EXPECT_EQ(::listen(listener_.fd.get(), 0), 0);
    for (int i = 0; i < 4; ++i) callers_.push_back(begin_dialling(listener_.at));
  }
  Endpoint at() const { return listener_.at; }

 private:
  Listener listener_;
  std::vector<SoleFd> callers_;
};

}  // namespace rdmacoll::tcp
