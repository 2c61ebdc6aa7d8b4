// TcpConfig: what the tcp transport can be told. Floor: transport/tcp/settings. Thread: a value.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/settings.h"
#include "csrc/base/status.h"

namespace rdmacoll::tcp {

inline constexpr int64_t kMaxStreams = 8;

struct PortRange {
  uint16_t first = 0;  // 0: any port that is free
  uint16_t last = 0;
};

struct TcpConfig {
  // RDMACOLL_SOCKET_IFNAME [NCCL_SOCKET_IFNAME]: interfaces to use, "eth,ib0" (prefixes), "=eth0"
  // (exact names), "^docker,lo" (all but these). Empty: network/interfaces.h says which.
  std::string interfaces;
  // RDMACOLL_TCP_PORTS: "20000-20100", or one port. Each process listens on one at each of its
  // addresses.
  PortRange ports;
  // RDMACOLL_TCP_STREAMS: connections per peer; large puts use all. Must be the same on all ranks.
  int64_t streams = 1;
  // RDMACOLL_TCP_TIMEOUT_MS: how long a host may acknowledge nothing before it counts as lost.
  static constexpr int64_t kTimeoutMinMs = 1'000;
  int64_t timeout_ms = 3'000;

  // InvalidArgument names the setting, its value and what is allowed.
  static Result<TcpConfig> read(const Settings& settings);
};

// Ok, or that one of them must have another value.
Status check_tcp_settings(const Settings& settings);
// What of them must be equal on all ranks, of settings that are valid.
std::string tcp_agreement(const Settings& settings);

}  // namespace rdmacoll::tcp
