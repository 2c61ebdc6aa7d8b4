// PeerSocket: sendmsg and recvmsg with SCM_RIGHTS. Floor: transport/shm.
#include "csrc/transport/shm/peer_socket.h"

#include <fcntl.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>

namespace rdmacoll {
namespace {

constexpr size_t kMaxDescriptors = std::tuple_size_v<decltype(Incoming::descriptors)>;
constexpr int kSocketType = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;

struct Address {
  sockaddr_un value{};
  socklen_t bytes;

  explicit Address(const std::string& name) {
    value.sun_family = AF_UNIX;  // sun_path[0] stays 0: abstract
    RDMACOLL_CHECK(name.size() < sizeof value.sun_path);
    std::memcpy(value.sun_path + 1, name.data(), name.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value); }
};

// The number of descriptors that a message must carry; none for a kind that does not exist.
std::optional<size_t> descriptors_of(const Message& message) {
  switch (message.kind) {
    case MessageKind::Challenge:
    case MessageKind::Proof:
    case MessageKind::Knock:
      return 0;
    case MessageKind::Hello:
      return 2;
    case MessageKind::Region:
      return message.reference == 0 ? 1 : 0;
    case MessageKind::Bye:
    case MessageKind::Closed:
    case MessageKind::Withdrawn:
    case MessageKind::Note:
      return 0;
  }
  return std::nullopt;
}

// Takes all descriptors that came, so that none leaks whatever the message turns out to be.
size_t take_descriptors(msghdr* header, Incoming* incoming) {
  size_t count = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr; part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t here = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < here; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      UniqueFd owned(fd);
      if (count < kMaxDescriptors) incoming->descriptors[count] = std::move(owned);
      ++count;
    }
  }
  return count;
}

SoleFd new_socket() {
  return SoleFd::made_by([] { return ::socket(AF_UNIX, kSocketType, 0); });
}

}  // namespace

Result<SoleFd> PeerSocket::listen(const std::string& name) {
  SoleFd fd = new_socket();
  if (!fd.valid()) return Status::from_errno("unix socket", errno);
  const Address address(name);
  if (::bind(fd.get(), address.get(), address.bytes) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    return Status::from_errno("listening on a unix socket", errno);
  }
  return fd;
}

PeerSocket PeerSocket::accept(const SoleFd& listener) {
  return PeerSocket(SoleFd::made_by(
      [&] { return ::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); }));
}

Result<PeerSocket> PeerSocket::dial(const std::string& name) {
  SoleFd fd = new_socket();
  if (!fd.valid()) return Status::from_errno("unix socket", errno);
  const Address address(name);
  if (::connect(fd.get(), address.get(), address.bytes) == 0) return PeerSocket(std::move(fd));
  if (errno == EAGAIN) return PeerSocket(SoleFd());
  if (errno == ECONNREFUSED) return Status(StatusCode::PeerFailed, "nobody listens");
  return Status::from_errno("connecting a unix socket", errno);
}

Result<ucred> PeerSocket::credentials() const {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) {
    return Status::from_errno("SO_PEERCRED", errno);
  }
  return credentials;
}

Status PeerSocket::send(const Message& message, std::initializer_list<int> descriptors) const {
  Result<bool> sent = try_send(message, descriptors);
  if (!sent.ok() || sent.value()) return sent.status();
  return Status::from_errno("sending a set-up message to a peer", EAGAIN);
}

Result<bool> PeerSocket::try_send(const Message& message,
                                  std::initializer_list<int> descriptors) const {
  RDMACOLL_CHECK(descriptors.size() == descriptors_of(message));
  iovec data{const_cast<Message*>(&message), sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (descriptors.size() > 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), descriptors.begin(), descriptors.size() * sizeof(int));
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(fd_.get(), &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
    return Status(StatusCode::PeerFailed, "the other process has closed the connection");
  }
  // The peer's queue is full, too many descriptors are on their way, or the kernel has no memory.
  const bool has_no_room =
      errno == EAGAIN || errno == ETOOMANYREFS || errno == ENOBUFS || errno == ENOMEM;
  if (sent < 0 && has_no_room) return false;
  if (sent < 0) return Status::from_errno("sending a set-up message to a peer", errno);
  return true;
}

PeerSocket::Received PeerSocket::receive(Incoming* incoming) const {
  iovec data{&incoming->message, sizeof incoming->message};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got;
  do {
    // ECONNRESET says once that the peer closed with messages of ours unread; its own may follow.
    got = ::recvmsg(fd_.get(), &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0) return errno == EAGAIN ? Received::Nothing : Received::Closed;
  if (got == 0) return Received::Closed;
  const size_t descriptors = take_descriptors(&header, incoming);
  const Message& message = incoming->message;
  const bool whole = got == sizeof message && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
  if (!whole || message.tag != Message::kTag || descriptors_of(message) != descriptors) {
    return Received::Broken;
  }
  return Received::One;
}

Status make_bell(const UniqueFd& passed) {
  const std::string path = "/proc/self/fd/" + std::to_string(passed.get());
  char what[64] = {};
  if (::readlink(path.c_str(), what, sizeof what - 1) < 0) {
    return Status::from_errno("looking up the descriptor that a peer passed for waking it", errno);
  }
  if (std::string(what) != "anon_inode:[eventfd]") {
    return Status(StatusCode::InvalidArgument, "what a process passed for waking it is no eventfd");
  }
  const int flags = ::fcntl(passed.get(), F_GETFL);
  if (flags < 0 || ::fcntl(passed.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return Status::from_errno("fcntl on the descriptor that a peer passed for waking it", errno);
  }
  return Status();
}

}  // namespace rdmacoll
