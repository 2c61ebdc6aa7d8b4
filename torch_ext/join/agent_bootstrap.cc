// The client of the agent. Floor: torch_ext/join.
#include "torch_ext/join/agent_bootstrap.h"

#include <endian.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "csrc/base/limits.h"
#include "csrc/base/printable.h"
#include "csrc/base/same_user.h"

namespace rdmacoll::torch_ext {
namespace {

constexpr char kCome[] = "RDMACOL1";
constexpr char kDecline[] = "RDMACOL0";
constexpr char kAskSecret[] = "RDMACOLS";
constexpr int64_t kDeclineMs = 1000;
constexpr int64_t kInterruptEveryMs = 100;
constexpr int kQueueMs = 20;  // between attempts to connect while the agent's queue is full
constexpr uint32_t kLongestAnswer = 1u << 16;  // of one rank; PAYLOAD_LIMIT_BYTES of the agent

// The connection to the agent, with one deadline for all that is done on it, from connecting on.
class Conversation {
 public:
  Conversation(Deadline deadline, const InterruptCheck& interrupt)
      : deadline_(deadline), interrupt_(interrupt) {}
  ~Conversation() {
    if (socket_ >= 0) ::close(socket_);
  }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  Status connect(const std::string& address) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    if (address.size() >= sizeof(to.sun_path)) {
      return Status(StatusCode::InvalidArgument, "RDMACOLL_AGENT='" + address + "' is too long");
    }
    std::memcpy(to.sun_path, address.data(), address.size());
    if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size() +
                                               (to.sun_path[0] == '\0' ? 0 : 1));
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket_ < 0) return Status::from_errno("socket", errno);
    while (::connect(socket_, reinterpret_cast<const sockaddr*>(&to), length) != 0) {
      if (errno != EAGAIN && errno != EINTR) {
        return Status::from_errno("reaching rdmarun's agent at RDMACOLL_AGENT='" + address + "'",
                                  errno);
      }
      ::poll(nullptr, 0, kQueueMs);  // others are waiting to be accepted
      RDMACOLL_RETURN_IF_ERROR(may_wait());
    }
    return check_user(address);
  }

  Status send(const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      RDMACOLL_RETURN_IF_ERROR(ready(POLLOUT));
      const ssize_t n = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && !is_passing(errno))
        return Status::from_errno("sending to rdmarun's agent", errno);
      if (n > 0) sent += static_cast<size_t>(n);
    }
    return Status();
  }

  Status receive(void* into, size_t bytes) {
    for (size_t received = 0; received < bytes;) {
      RDMACOLL_RETURN_IF_ERROR(ready(POLLIN));
      const ssize_t n = ::recv(socket_, static_cast<char*>(into) + received, bytes - received, 0);
      if (n < 0 && !is_passing(errno)) return Status::from_errno("hearing rdmarun's agent", errno);
      if (n == 0) return Status(StatusCode::PeerFailed, "rdmarun's agent hung up");
      if (n > 0) received += static_cast<size_t>(n);
    }
    return Status();
  }

  // The first number of an answer; with the agent's reason where it refuses.
  Status accepted() {
    auto refused = receive_number();
    if (!refused.ok()) return refused.status();
    if (refused.value() == 0) return Status();
    auto why = receive_text();
    if (!why.ok()) return why.status();
    return Status(StatusCode::PeerFailed, why.value().empty()
                                              ? "rdmarun's agent refuses, and does not say why"
                                              : printable(why.value()));
  }

  Result<uint32_t> receive_number() {
    uint32_t number = 0;
    RDMACOLL_RETURN_IF_ERROR(receive(&number, sizeof number));
    return le32toh(number);
  }

  Result<std::string> receive_text() {
    auto length = receive_number();
    if (!length.ok()) return length.status();
    if (length.value() > kLongestAnswer) {
      return Status(StatusCode::System, "rdmarun's agent does not keep to the protocol");
    }
    std::string text(length.value(), '\0');
    RDMACOLL_RETURN_IF_ERROR(receive(text.data(), text.size()));
    return text;
  }

 private:
  // The name outlives the agent, and then anybody may listen under it.
  Status check_user(const std::string& address) const {
    ucred other{};
    socklen_t bytes = sizeof other;
    if (::getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &other, &bytes) != 0) {
      return Status::from_errno("SO_PEERCRED", errno);
    }
    if (same_user_or_root(other.uid)) return Status();
    return Status(StatusCode::PeerFailed,
                  "at RDMACOLL_AGENT='" + address + "' listens " + user_text(other.uid) +
                      ", and not rdmarun's agent of this user; unset it, or "
                      "start the ranks with rdmarun again");
  }

  Status ready(short events) {
    for (;;) {
      pollfd descriptor{socket_, events, 0};
      const int64_t wait_ms = std::min(deadline_.left_ms(clock_), kInterruptEveryMs);
      if (::poll(&descriptor, 1, static_cast<int>(wait_ms)) > 0) return Status();
      RDMACOLL_RETURN_IF_ERROR(may_wait());
    }
  }

  Status may_wait() {
    RDMACOLL_RETURN_IF_ERROR(interrupt_());
    if (!deadline_.passed(clock_)) return Status();
    return Status(StatusCode::Timeout,
                  "not all ranks came to make the group: rdmarun's agent has no answer yet; "
                  "see whether all ranks run, or raise the timeout");
  }

  static bool is_passing(int error) { return error == EINTR || error == EAGAIN; }

  const SteadyClock clock_;
  const Deadline deadline_;
  const InterruptCheck& interrupt_;
  int socket_ = -1;
};

std::string number_bytes(size_t number) {
  const uint32_t little = htole32(static_cast<uint32_t>(number));
  return std::string(reinterpret_cast<const char*>(&little), sizeof little);
}

}  // namespace

AgentBootstrap::AgentBootstrap(std::string address, int rank, int world, InterruptCheck interrupt)
    : address_(std::move(address)), rank_(rank), world_(world), interrupt_(std::move(interrupt)) {}

Result<std::vector<std::string>> AgentBootstrap::all_gather(const std::string& mine,
                                                            Deadline deadline) {
  Conversation agent(deadline, interrupt_);
  RDMACOLL_RETURN_IF_ERROR(agent.connect(address_));
  RDMACOLL_RETURN_IF_ERROR(agent.send(message(kCome, mine)));
  RDMACOLL_RETURN_IF_ERROR(agent.accepted());
  auto count = agent.receive_number();
  if (!count.ok()) return count.status();
  if (count.value() != static_cast<uint32_t>(world_)) {
    return Status(StatusCode::Mismatch, "rdmarun's world has " + std::to_string(count.value()) +
                                            " ranks, this group " + std::to_string(world_));
  }
  std::vector<std::string> everyones;
  for (int rank = 0; rank < world_; ++rank) {
    auto text = agent.receive_text();
    if (!text.ok()) return text.status();
    everyones.push_back(text.take());
  }
  return everyones;
}

Result<std::string> AgentBootstrap::secret(Deadline deadline) {
  Conversation agent(deadline, interrupt_);
  RDMACOLL_RETURN_IF_ERROR(agent.connect(address_));
  RDMACOLL_RETURN_IF_ERROR(agent.send(message(kAskSecret, "")));
  RDMACOLL_RETURN_IF_ERROR(agent.accepted());
  auto secret = agent.receive_text();
  if (secret.ok() && secret.value().size() < kSecretBytesMin) {
    return Status(StatusCode::System, "rdmarun's agent does not keep to the protocol");
  }
  return secret;
}

void AgentBootstrap::decline(const std::string& mine) {
  Conversation agent(Deadline::after_ms(SteadyClock(), kDeclineMs), interrupt_);
  Status sent = agent.connect(address_);
  // This rank has an error to raise already; without an agent nobody is left to tell.
  if (sent.ok()) sent = agent.send(message(kDecline, mine));
}

std::string AgentBootstrap::message(const char* magic, const std::string& mine) const {
  return magic + number_bytes(static_cast<size_t>(rank_)) +
         number_bytes(static_cast<size_t>(world_)) + number_bytes(mine.size()) + mine;
}

}  // namespace rdmacoll::torch_ext
