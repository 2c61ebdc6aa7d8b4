// IpAddress and Endpoint. Floor: transport/tcp/network.
#include "csrc/transport/tcp/network/ip.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace rdmacoll::tcp {
namespace {

constexpr std::array<uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr size_t kV4At = kMapped.size();

}  // namespace

bool IpAddress::is_v4() const { return std::equal(kMapped.begin(), kMapped.end(), bytes.begin()); }

bool IpAddress::is_loopback() const {
  if (is_v4()) return bytes[kV4At] == 127;
  return std::all_of(bytes.begin(), bytes.end() - 1, [](uint8_t byte) { return byte == 0; }) &&
         bytes.back() == 1;
}

bool IpAddress::is_link_local() const {
  if (is_v4()) return bytes[kV4At] == 169 && bytes[kV4At + 1] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool IpAddress::shares_prefix(const IpAddress& other, unsigned bits) const {
  if (is_v4() != other.is_v4()) return false;
  const size_t first = is_v4() ? kV4At : 0;
  for (size_t i = first; i < bytes.size() && bits > 0; ++i) {
    const unsigned here = std::min(bits, 8u);
    if ((bytes[i] ^ other.bytes[i]) >> (8 - here) != 0) return false;
    bits -= here;
  }
  return true;
}

bool read_ip(const sockaddr* address, IpAddress* ip) {
  if (address == nullptr) return false;
  if (address->sa_family == AF_INET) {
    std::copy(kMapped.begin(), kMapped.end(), ip->bytes.begin());
    std::memcpy(&ip->bytes[kV4At], &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
    return true;
  }
  if (address->sa_family != AF_INET6) return false;
  std::memcpy(ip->bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
  return true;
}

SocketAddress socket_address(const Endpoint& endpoint) {
  SocketAddress made;
  if (endpoint.ip.is_v4()) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&made.storage);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(endpoint.port);
    std::memcpy(&v4->sin_addr, &endpoint.ip.bytes[kV4At], 4);
    made.bytes = sizeof(*v4);
  } else {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&made.storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(endpoint.port);
    std::memcpy(&v6->sin6_addr, endpoint.ip.bytes.data(), 16);
    made.bytes = sizeof(*v6);
  }
  return made;
}

std::string text_of(const IpAddress& ip) {
  char text[INET6_ADDRSTRLEN] = "";
  const bool v4 = ip.is_v4();
  ::inet_ntop(v4 ? AF_INET : AF_INET6, &ip.bytes[v4 ? kV4At : 0], text, sizeof(text));
  return text;
}

std::string text_of(const Endpoint& endpoint) {
  const std::string ip = text_of(endpoint.ip);
  return (endpoint.ip.is_v4() ? ip : "[" + ip + "]") + ":" + std::to_string(endpoint.port);
}

}  // namespace rdmacoll::tcp
