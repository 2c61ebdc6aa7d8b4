// ShmTransport: how two processes meet; serve.cc goes on with it. Floor: transport/shm.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "csrc/base/host_name.h"
#include "csrc/base/printable.h"
#include "csrc/base/same_user.h"
#include "csrc/transport/shm/host_id.h"
#include "csrc/transport/shm/serve_until.h"
#include "csrc/transport/shm/transport.h"

namespace rdmacoll {
namespace {

// How soon one that was turned away, or found the other busy, dials again; and knocks again.
constexpr int64_t kRedialNs = 5'000'000;
constexpr int64_t kKnockAgainNs = 100'000'000;

// As other transports name it. Who is reached is on this host, and the host's id tells people
// little.
std::string process_name(uint32_t pid) {
  return "process " + std::to_string(pid) + " on host '" + host_name() + "'";
}

}  // namespace

Result<PeerId> ShmTransport::connect(const std::string& address, Deadline deadline) {
  Result<ShmAddress> parsed = parse_shm_address(address);
  if (!parsed.ok()) return parsed.status();
  const ShmAddress theirs = parsed.take();
  RDMACOLL_RETURN_IF_ERROR(reachable(theirs));

  PeerId id = 0;
  Status outcome;
  const bool in_time = serve_until(deadline, [&] {
    if (const auto known = ids_.find(theirs.process); known != ids_.end()) {
      id = known->second;
      outcome = peer_status(id);
      unmet_.note_met(theirs.process);
      news_.note_met(theirs.process);
      return true;
    }
    const int64_t now_ns = clock_.now_ns();
    int64_t& dial_at_ns = unmet_.dial_at_ns(theirs.process, now_ns);
    outcome = unmet_.status_of(theirs.process);
    if (!outcome.ok()) return true;
    if (now_ns < dial_at_ns || dialling(theirs.process)) return false;
    dial_at_ns = now_ns + (own_address_.process < theirs.process ? kRedialNs : kKnockAgainNs);
    outcome = dial(theirs);
    return !outcome.ok();
  });
  if (!in_time) {
    const std::lock_guard lock(mutex_);
    return Status(StatusCode::Timeout,
                  process_name(theirs.pid) +
                      " did not connect in time; it may be late, stuck or dead" +
                      unmet_.why_not(theirs.process));
  }
  if (!outcome.ok()) return outcome;
  return id;
}

// It has dialled me and said Hello, or has knocked.
bool ShmTransport::called_by(const std::string& address) const {
  Result<ShmAddress> theirs = parse_shm_address(address);
  if (!theirs.ok()) return false;
  const ProcessId& process = theirs.value().process;
  const std::lock_guard lock(mutex_);
  return ids_.contains(process) || unmet_.has_knocked(process);
}

Status ShmTransport::reachable(const ShmAddress& theirs) const {
  if (theirs.host != own_address_.host) {
    return Status(StatusCode::Unsupported,
                  "shared memory reaches one host only: this process is on host '" +
                      own_address_.host + "', process " + std::to_string(theirs.pid) + " on '" +
                      printable(theirs.host, kMaxHostIdBytes) +
                      "'; if these are one machine, set RDMACOLL_HOST_ID to the same value there");
  }
  if (theirs.network_namespace != own_address_.network_namespace) {
    return Status(StatusCode::Unsupported,
                  "process " + std::to_string(theirs.pid) +
                      " is in another container than this one: shared memory needs all ranks of a "
                      "host in one network namespace (docker run --network=host)");
  }
  return Status();
}

bool ShmTransport::dialling(const ProcessId& process) const {
  return std::any_of(handshakes_.begin(), handshakes_.end(), [&](const Handshake& handshake) {
    return handshake.dialled && handshake.process == process;
  });
}

Result<PeerSocket> ShmTransport::listener_of(const ShmAddress& theirs) const {
  Result<PeerSocket> socket = PeerSocket::dial(socket_name(theirs.process));
  if (socket.status().code() != StatusCode::PeerFailed) return socket;
  return Status(StatusCode::PeerFailed,
                process_name(theirs.pid) +
                    " does not listen: it has ended, or it is on another machine that was given "
                    "the same RDMACOLL_HOST_ID" +
                    unmet_.why_not(theirs.process));
}

Status ShmTransport::dial(const ShmAddress& theirs) {
  Result<PeerSocket> socket = listener_of(theirs);
  if (!socket.ok()) return socket.status();
  if (!socket.value().valid()) return Status();  // busy: the waiting loop tries again
  Status heard_hello = say_hello(socket.take(), &theirs);
  if (heard_hello.code() != StatusCode::PeerFailed) return heard_hello;
  unmet_.note_hung_up(theirs.process);  // the waiting loop tries again here, too
  return Status();
}

// Challenges it, or knocks, and remembers the socket until the other side's Hello, or answer,
// comes.
Status ShmTransport::say_hello(PeerSocket socket, const ShmAddress* dialled) {
  Result<ucred> other = socket.credentials();
  if (!other.ok()) return other.status();
  if (!same_user(other.value().uid)) {
    return Status(StatusCode::Unsupported, "process " + std::to_string(other.value().pid) +
                                               " belongs to " + user_text(other.value().uid) +
                                               ", this one to " + user_text(::geteuid()) +
                                               "; run all ranks of a host as one user");
  }
  Result<ProcessId> nonce = random_process_id();
  if (!nonce.ok()) return nonce.status();
  Handshake handshake(std::move(socket), nonce.value());
  if (dialled != nullptr) {
    handshake.dialled = true;
    handshake.knocks = dialled->process < own_address_.process;
    handshake.process = dialled->process;
  }
  RDMACOLL_RETURN_IF_ERROR(handshake.socket.send(handshake.knocks
                                                     ? handshake.knock(own_address_.process)
                                                     : handshake.challenge(own_address_.process),
                                                 {}));
  RDMACOLL_RETURN_IF_ERROR(
      watch(setup_set_, handshake.socket.fd(), EPOLLIN,
            {Watched::Handshake, static_cast<uint32_t>(handshake.socket.fd())}));
  handshakes_.push_back(std::move(handshake));
  return Status();
}

void ShmTransport::hear_handshake(int fd) {
  const auto found = std::find_if(handshakes_.begin(), handshakes_.end(),
                                  [&](const Handshake& s) { return s.socket.fd() == fd; });
  if (found == handshakes_.end()) return;
  Incoming incoming;
  const PeerSocket::Received received = found->socket.receive(&incoming);
  if (received == PeerSocket::Received::Nothing) return;
  const Handshake::Next next = received == PeerSocket::Received::One
                                   ? found->hear(incoming.message, key_, own_address_.process)
                                   : Handshake::Next::Drop;
  if (reply(*found, next)) return;
  Handshake handshake = std::move(*found);
  handshakes_.erase(found);
  unwatch(setup_set_, fd);
  if (next == Handshake::Next::Refuse) {
    refuse(handshake,
           "did not prove that it knows the secret of this job; " + std::string(kAboutSecrets));
  }
  if (received == PeerSocket::Received::Broken) {
    refuse(handshake,
           "does not keep to the protocol of this version of rdmacoll; install the same "
           "one for all ranks");
  }
  if (received == PeerSocket::Received::Closed && handshake.dialled) {
    unmet_.note_hung_up(handshake.process);
  }
  if (ids_.contains(handshake.process)) return;
  if (next == Handshake::Next::NoteKnock) {
    Result<ucred> other = handshake.socket.credentials();
    unmet_.note_knock(handshake.process);
    note_caller(handshake.process, other.ok() ? other.value().pid : 0);
  }
  if (next == Handshake::Next::Admit) {
    // As in accept_callers: not admitted, the socket closes and both sides notice.
    const Status status = admit(std::move(incoming), std::move(handshake.socket));
    if (!status.ok()) unmet_.note_turned_away(status.message());
  }
}

// Whether there was something to say, and it was said.
bool ShmTransport::reply(const Handshake& handshake, Handshake::Next next) {
  if (next == Handshake::Next::Prove) {
    auto proof = handshake.proof(key_, own_address_.process);
    if (!proof.ok()) unmet_.note_turned_away(proof.status().message());
    return proof.ok() && handshake.socket.send(proof.value(), {}).ok();
  }
  if (next != Handshake::Next::SayHello) return false;
  Message hello;
  hello.kind = MessageKind::Hello;
  hello.sender = own_address_.process;
  return handshake.socket.send(hello, {self().control_segment.fd(), self().wake_fd.get()}).ok();
}

// Whoever waits for that process hears of it at once. Of a process that has not said who it is only
// the text of later errors tells.
void ShmTransport::refuse(const Handshake& handshake, const std::string& why) {
  Result<ucred> other = handshake.socket.credentials();
  const auto pid = other.ok() ? static_cast<uint32_t>(other.value().pid) : 0;
  unmet_.refuse(handshake.process, process_name(pid) + " " + why);
}

// Who calls here is of this host and network namespace.
void ShmTransport::note_caller(const ProcessId& process, pid_t pid) {
  news_.note_caller(process, encode(ShmAddress{process, static_cast<uint32_t>(pid),
                                               own_address_.network_namespace, own_address_.host}));
}

Status ShmTransport::admit(Incoming hello, PeerSocket socket) {
  const auto id = static_cast<PeerId>(ids_.size());
  if (id == kMaxPeers) {
    return Status(StatusCode::Unsupported,
                  "a process can meet " + std::to_string(kMaxPeers - 1) + " others");
  }
  Result<ucred> other = socket.credentials();
  if (!other.ok()) return other.status();
  RDMACOLL_RETURN_IF_ERROR(make_bell(hello.descriptors[1]));
  Result<SharedSegment> control = SharedSegment::map(hello.descriptors[0], sizeof(Control));
  if (!control.ok()) return control.status();
  const pid_t pid = other.value().pid;
  auto peer = std::make_unique<Peer>(control.take(), WakeFd(std::move(hello.descriptors[1])),
                                     std::move(socket));
  peer->id = id;
  peer->process = hello.message.sender;
  peer->name = process_name(static_cast<uint32_t>(pid));
  peer->same_process = pid == pid_;
  RDMACOLL_RETURN_IF_ERROR(watch_peer(id, peer.get(), pid));
  ids_[peer->process] = id;
  note_caller(peer->process, pid);
  peers_.set(id, std::move(peer));
  return Status();
}

Status ShmTransport::watch_peer(PeerId id, Peer* peer, pid_t pid) {
  // A pidfd is a second sign of the end, where the kernel has it (5.3) and the pid is of my
  // namespace (else 0).
  if (pid > 0 && !peer->same_process) {
    peer->process_fd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  }
  RDMACOLL_RETURN_IF_ERROR(
      watch(setup_set_, peer->socket.fd(), EPOLLIN, {Watched::PeerSocket, id}));
  RDMACOLL_RETURN_IF_ERROR(
      watch(wake_set_, peer->socket.fd(), EPOLLRDHUP, {Watched::PeerSocket, id}));
  if (!peer->process_fd.valid()) return Status();
  return watch(wake_set_, peer->process_fd.get(), EPOLLIN, {Watched::PeerProcess, id});
}

}  // namespace rdmacoll
