// Floor: benchmarks. Thread: a process's main one.
#include "benchmarks/transfer/tcp_way.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rdmacoll::bench {
namespace {

void need(bool went, const char* what) {
  if (!went) give_up(std::string("tcp, ") + what + ": " + std::strerror(errno));
}

}  // namespace

// The receiver listens, and tells where.
TcpWay::TcpWay(const Place& place) : place_(place) {
  MeetingBootstrap meeting(*place.meeting, place.rank(), 2);
  const SteadyClock clock;
  sockaddr_in at{};
  at.sin_family = AF_INET;
  need(inet_pton(AF_INET, place.host.address.c_str(), &at.sin_addr) == 1, "its address");
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  socklen_t bytes = sizeof at;
  const int own = socket(AF_INET, SOCK_STREAM, 0);
  if (!place.sends) {
    need(bind(own, address, bytes) == 0 && listen(own, 1) == 0, "listening");
    need(getsockname(own, address, &bytes) == 0, "its port");
  }
  const std::string mine(reinterpret_cast<const char*>(&at), sizeof at);
  const auto told = needed(meeting.all_gather(mine, Deadline::after_ms(clock, 60'000)));
  if (place.sends) {
    std::memcpy(&at, told[1].data(), sizeof at);
    need(connect(own, address, sizeof at) == 0, "connecting");
    connection_ = own;
  } else {
    connection_ = accept(own, nullptr, nullptr);
    need(connection_ >= 0, "accepting");
    close(own);
  }
  const int yes = 1;
  setsockopt(connection_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

TcpWay::~TcpWay() { close(connection_); }

void TcpWay::send() {
  write(tensor_.data(), tensor_.size());
  read(&answer_, 1);
}

void TcpWay::serve(int count) {
  for (int i = 0; i < count; ++i) {
    read(tensor_.data(), tensor_.size());
    use(place_, tensor_.data(), tensor_.size());
    write(&answer_, 1);
  }
}

void TcpWay::write(const std::byte* data, uint64_t bytes) const {
  while (bytes > 0) {
    const ssize_t sent = ::send(connection_, data, bytes, MSG_NOSIGNAL);
    need(sent > 0, "sending");
    data += sent;
    bytes -= static_cast<uint64_t>(sent);
  }
}

void TcpWay::read(std::byte* data, uint64_t bytes) const {
  while (bytes > 0) {
    const ssize_t got = recv(connection_, data, bytes, 0);
    need(got > 0, "receiving");
    data += got;
    bytes -= static_cast<uint64_t>(got);
  }
}

}  // namespace rdmacoll::bench
