// Interfaces: the addresses of this host at which others may reach it, the best first.
// Floor: transport/tcp/network. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/transport/tcp/network/ip.h"

namespace rdmacoll::tcp {

struct Interface {
  std::string name;
  IpAddress ip;
  unsigned prefix_bits = 0;  // of its network
  int64_t mbit_per_s = 0;    // 0: it does not say
};

// As the system has them: those that are up, also loopback.
Result<std::vector<Interface>> system_interfaces();

// Of these, the ones to use, the fastest first. Without a filter (RDMACOLL_SOCKET_IFNAME) those of
// containers and of virtual machines on this host, and loopback, are used only where there are no
// others: another host has some of the same addresses. InvalidArgument: the filter takes none of
// them. Unsupported: there is none.
Result<std::vector<Interface>> choose_interfaces(std::vector<Interface> all,
                                                 const std::string& filter);

}  // namespace rdmacoll::tcp
