// IpAddress and Endpoint: where a process listens, IPv4 or IPv6.
// Floor: transport/tcp/network. Thread: values.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>

namespace rdmacoll::tcp {

// As IPv6 has it; an IPv4 address is mapped into that (::ffff:10.0.0.1).
struct IpAddress {
  std::array<uint8_t, 16> bytes{};

  bool operator==(const IpAddress&) const = default;
  bool is_v4() const;
  bool is_loopback() const;
  bool is_link_local() const;  // which another host cannot dial without knowing its interface
  // Whether the first `bits` of both are equal; those of an IPv4 address count from 0.
  bool shares_prefix(const IpAddress& other, unsigned bits) const;
};

struct Endpoint {
  IpAddress ip;
  uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;
};

// As the calls of sockets want it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// nullptr, or of another family: not one.
bool read_ip(const sockaddr* address, IpAddress* ip);
SocketAddress socket_address(const Endpoint& endpoint);
std::string text_of(const IpAddress& ip);       // 10.0.0.1, fd00::1
std::string text_of(const Endpoint& endpoint);  // 10.0.0.1:4711, [fd00::1]:4711

}  // namespace rdmacoll::tcp
