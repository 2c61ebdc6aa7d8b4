// Sockets. Floor: transport/tcp/network.
#include "csrc/transport/tcp/network/sockets.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "csrc/base/limits.h"

namespace rdmacoll::tcp {
namespace {

constexpr int kBacklog = kMaxPeers;  // all may dial at once

bool set_option(int fd, int level, int option, int value) {
  return ::setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

SoleFd new_socket(const IpAddress& ip) {
  return SoleFd::made_by([&] {
    return ::socket(ip.is_v4() ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  });
}

// Of one end of a socket, as getsockname or getpeername tells it; no address: it does not.
template <typename Ask>
Endpoint endpoint_of(int fd, Ask ask) {
  SocketAddress told;
  told.bytes = sizeof(told.storage);
  auto* const storage = reinterpret_cast<sockaddr*>(&told.storage);
  Endpoint endpoint;
  if (ask(fd, storage, &told.bytes) != 0 || !read_ip(storage, &endpoint.ip)) return {};
  endpoint.port =
      ntohs(endpoint.ip.is_v4() ? reinterpret_cast<const sockaddr_in*>(storage)->sin_port
                                : reinterpret_cast<const sockaddr_in6*>(storage)->sin6_port);
  return endpoint;
}

Result<Listener> listen_on(const Endpoint& at, bool* is_taken) {
  Listener listener{new_socket(at.ip), at};
  const int fd = listener.fd.get();
  if (!listener.fd.valid()) return Status::from_errno("socket", errno);
  if (!at.ip.is_v4()) set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);  // connections of an ended job linger on its port
  const SocketAddress address = socket_address(at);
  if (::bind(fd, address.get(), address.bytes) != 0 || ::listen(fd, kBacklog) != 0) {
    *is_taken = errno == EADDRINUSE;
    return Status::from_errno("listening at " + text_of(at), errno);
  }
  listener.at.port = endpoint_of(fd, ::getsockname).port;
  if (listener.at.port == 0) return Status::from_errno("getsockname", errno);
  return listener;
}

}  // namespace

Result<Listener> listen_at(const IpAddress& ip, const PortRange& ports) {
  for (uint32_t port = ports.first; port <= ports.last; ++port) {
    bool is_taken = false;
    Result<Listener> listener = listen_on({ip, static_cast<uint16_t>(port)}, &is_taken);
    if (!is_taken) return listener;
  }
  return Status(StatusCode::Unsupported,
                "no port from " + std::to_string(ports.first) + " to " +
                    std::to_string(ports.last) + " is free at " + text_of(ip) +
                    "; each process of a host takes one: give RDMACOLL_TCP_PORTS a wider range");
}

SoleFd accept_from(const Listener& listener) {
  return SoleFd::made_by(
      [&] { return ::accept4(listener.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
}

SoleFd begin_dialling(const Endpoint& to) {
  SoleFd fd = new_socket(to.ip);
  if (!fd.valid()) return fd;
  const SocketAddress address = socket_address(to);
  if (::connect(fd.get(), address.get(), address.bytes) == 0 || errno == EINPROGRESS) return fd;
  const int error = errno;
  fd.reset();
  errno = error;
  return fd;
}

Endpoint other_end_of(int fd) { return endpoint_of(fd, ::getpeername); }

int error_of(int fd) {
  int error = 0;
  socklen_t bytes = sizeof(error);
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? error : errno;
}

// TCP_USER_TIMEOUT would do this also while something is sent. But it ends a connection to a
// process that is stopped, and so takes nothing, although its host answers: unanswered_ms() tells
// these apart.
Status set_up_connection(int fd, int64_t timeout_ms) {
  const int probe_s = static_cast<int>(std::max<int64_t>(timeout_ms / 3'000, 1));
  if (set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) && set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
      set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, probe_s) &&
      set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, probe_s) &&
      set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 2)) {
    return Status();
  }
  return Status::from_errno("setting up a connection", errno);
}

bool has_unacknowledged(int fd) {
  int bytes = 0;
  return ::ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

bool has_unread(int fd) {
  int bytes = 0;
  return ::ioctl(fd, SIOCINQ, &bytes) == 0 && bytes > 0;
}

int64_t unanswered_ms(int fd) {
  tcp_info info{};
  socklen_t bytes = sizeof(info);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return 0;
  return info.tcpi_unacked > 0 || info.tcpi_probes > 0 ? info.tcpi_last_ack_recv : 0;
}

}  // namespace rdmacoll::tcp
