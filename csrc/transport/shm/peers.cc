// ShmTransport: what peers say, and how they end. Floor: transport/shm.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "csrc/transport/shm/transport.h"

namespace rdmacoll {
namespace {

// Nothing more can come, but what has come may hold references.
void end(const PeerSocket& socket, bool same_process) {
  socket.hang_up();
  Incoming incoming;
  while (socket.receive(&incoming) == PeerSocket::Received::One) {
    if (same_process) take_reference(incoming.message);
    incoming = Incoming();
  }
}

}  // namespace

void ShmTransport::hear_peer(Peer* peer) {
  while (peer->alive()) {
    Incoming incoming;
    switch (peer->socket.receive(&incoming)) {
      case PeerSocket::Received::Nothing:
        return;
      case PeerSocket::Received::Closed:
        return lose(peer, PeerState::Gone, Status(StatusCode::PeerFailed, peer->name + " ended"));
      case PeerSocket::Received::One:
        if (incoming.message.kind == MessageKind::Bye) {
          return lose(peer, PeerState::Gone, Status(StatusCode::PeerFailed, peer->name + " left"));
        }
        if (Status wrong = hear_of_region(peer, std::move(incoming)); !wrong.ok()) {
          return lose(peer, PeerState::Broken, std::move(wrong));
        }
        break;
      case PeerSocket::Received::Broken:
        return lose(peer, PeerState::Broken, makes_no_sense(peer->name));
    }
  }
}

void ShmTransport::lose(Peer* peer, PeerState state, Status why) {
  // A descriptor that stays readable would let nobody sleep.
  unwatch(setup_set_, peer->socket.fd());
  unwatch(wake_set_, peer->socket.fd());
  if (peer->process_fd.valid()) unwatch(wake_set_, peer->process_fd.get());
  end(peer->socket, peer->same_process);
  note_end(peer->id, std::move(why));
  peer->state.store(state, std::memory_order_release);
}

void ShmTransport::check_failures() {
  epoll_event events[16];
  const int count = ::epoll_wait(wake_set_.get(), events, std::size(events), 0);
  for (int i = 0; i < count; ++i) {
    const WatchTag tag = WatchTag::unpack(events[i].data.u64);
    if (tag.what == Watched::Wake) continue;
    const std::lock_guard lock(mutex_);
    Peer* peer = peers_.at(tag.index);
    if (peer == nullptr) continue;  // it is not connected yet
    hear_peer(peer);                // it may have said goodbye before
    if (tag.what == Watched::PeerProcess && peer->alive()) {
      lose(peer, PeerState::Gone, Status(StatusCode::PeerFailed, peer->name + " ended"));
    }
  }
}

Status ShmTransport::fence(PeerId id, Deadline) {
  const Peer& peer = peer_at(id);
  if (peer.state.load(std::memory_order_acquire) == PeerState::Gone) return Status();
  return Status(StatusCode::Unsupported,
                peer.name +
                    " may still write: a live peer's mapping cannot be taken away; release "
                    "the region instead of reusing it");
}

void ShmTransport::leave() {
  const std::lock_guard lock(mutex_);
  ::shutdown(listener_.get(), SHUT_RDWR);
  unwatch(setup_set_, listener_.get());
  for (const Handshake& handshake : handshakes_) {
    Result<ucred> other = handshake.socket.credentials();
    end(handshake.socket, other.ok() && other.value().pid == pid_);
  }
  for (PeerId id = 0; id < ids_.size(); ++id) {
    Peer* peer = peers_.at(id);
    if (!peer->alive() || !peer->socket.valid()) continue;
    Message bye;
    bye.kind = MessageKind::Bye;
    bye.sender = own_address_.process;
    // If it cannot be sent, the peer reads the end of the socket as my end, which is as good.
    [[maybe_unused]] const Status status = peer->socket.send(bye, {});
    lose(peer, PeerState::Broken, Status(StatusCode::Aborted, "this process has left"));
  }
}

}  // namespace rdmacoll
