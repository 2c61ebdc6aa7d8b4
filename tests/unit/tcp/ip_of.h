// ip_of: an address from its text, for tests. Floor: tests. Thread: pure functions.
#pragma once

#include <arpa/inet.h>

#include <string>

#include "csrc/base/check.h"
#include "csrc/transport/tcp/network/ip.h"

namespace rdmacoll::tcp {

inline IpAddress ip_of(const std::string& text) {
  const bool v6 = text.find(':') != std::string::npos;
  sockaddr_storage storage{};
  storage.ss_family = v6 ? AF_INET6 : AF_INET;
  void* const at = v6 ? static_cast<void*>(&reinterpret_cast<sockaddr_in6&>(storage).sin6_addr)
                      : static_cast<void*>(&reinterpret_cast<sockaddr_in&>(storage).sin_addr);
  RDMACOLL_CHECK(::inet_pton(storage.ss_family, text.c_str(), at) == 1);
  IpAddress ip;
  RDMACOLL_CHECK(read_ip(reinterpret_cast<const sockaddr*>(&storage), &ip));
  return ip;
}

}  // namespace rdmacoll::tcp
