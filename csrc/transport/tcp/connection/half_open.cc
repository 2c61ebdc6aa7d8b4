// HalfOpen. Floor: transport/tcp/connection.
#include "csrc/transport/tcp/connection/half_open.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/transport/tcp/network/sockets.h"

namespace rdmacoll::tcp {

static_assert(sizeof(Greeting) >= sizeof(Answer) && sizeof(Greeting) >= sizeof(Mac));

HalfOpen::Progress HalfOpen::advance(const JobKey& key) {
  if (connecting_) {
    if (still_connecting()) return Progress::Waits;
    if (const int error = error_of(fd_.get()); error != 0) {
      why_ = Status(StatusCode::PeerFailed, std::strerror(error));
      return Progress::Failed;
    }
    connecting_ = false;
    if (!say()) return Progress::HungUp;
  }
  return hear(key);
}

bool HalfOpen::still_connecting() {
  pollfd waited{fd_.get(), POLLOUT, 0};
  return ::poll(&waited, 1, 0) <= 0;  // below 0: a signal interrupted it
}

// No byte more than is wanted is read: frames follow.
HalfOpen::Progress HalfOpen::hear(const JobKey& key) {
  while (true) {
    const size_t wanted = handshake_.wants_bytes();
    const ssize_t got = ::recv(fd_.get(), said_.data() + said_bytes_, wanted - said_bytes_, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Progress::Waits;
    if (got <= 0) return Progress::HungUp;
    said_bytes_ += static_cast<size_t>(got);
    if (said_bytes_ < wanted) continue;
    said_bytes_ = 0;
    const Handshake::Next next = handshake_.hear({said_.data(), wanted}, key);
    if (next == Handshake::Next::Met) return Progress::Met;
    const bool said = say();
    if (next == Handshake::Next::Failed) {
      why_ = handshake_.why();
      return Progress::Failed;
    }
    if (!said) return Progress::HungUp;
  }
}

// The buffer of a new connection has room for it.
bool HalfOpen::say() {
  const std::string reply = handshake_.take_reply();
  return ::send(fd_.get(), reply.data(), reply.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(reply.size());
}

}  // namespace rdmacoll::tcp
