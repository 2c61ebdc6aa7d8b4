// TcpTransport: opening, leaving, and how a peer is lost. Floor: transport/tcp. Thread:
// transport.h.
#include "csrc/transport/tcp/transport.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/base/host_name.h"

namespace rdmacoll {

using tcp::FrameHead;
using tcp::FrameKind;

namespace {

constexpr int64_t kLeaveMs = 1'000;
constexpr useconds_t kLookAgainUs = 100;

}  // namespace

Result<std::unique_ptr<TcpTransport>> TcpTransport::open(const Config& config, const Clock& clock,
                                                         const ThisProcess& process) {
  auto key = JobKey::load(config.secret.text);
  if (!key.ok()) return key.status();
  auto settings = tcp::TcpConfig::read(config.settings);
  if (!settings.ok()) return settings.status();
  std::unique_ptr<TcpTransport> transport(new TcpTransport(settings.value(), key.take(), clock));
  RDMACOLL_RETURN_IF_ERROR(transport->start(process));
  return transport;
}

TcpTransport::TcpTransport(const tcp::TcpConfig& config, JobKey key, const Clock& clock)
    : config_(config),
      key_(std::move(key)),
      clock_(clock),
      pid_(::getpid()),
      data_set_(::epoll_create1(EPOLL_CLOEXEC)) {
  unsent_.reserve(kMaxPeers);
}

Status TcpTransport::start(const ThisProcess& process) {
  if (!data_set_.valid()) return Status::from_errno("epoll_create", errno);
  news_.ring_by(process.alarm);
  own_address_ = {process.id, static_cast<uint32_t>(pid_), host_name(), {}};
  auto connector = tcp::Connector::open(config_, key_, own_address_, clock_, news_);
  if (!connector.ok()) return connector.status();
  connector_ = connector.take();
  own_address_.endpoints = connector_->endpoints();
  std::string device;
  for (const tcp::Interface& one : connector_->interfaces()) {
    device += (device.empty() ? "" : ", ") + one.name + " " + text_of(one.ip);
  }
  set_info({.name = kName,
            .device = device,
            .address = encode(own_address_),
            .attention_fd = data_set_.get(),
            .set_up_fd = connector_->wait_fd(),
            .any_memory = true,
            .has_updates = true});
  add_loopback();
  return Status();
}

// This process is its own peer 0, so that a group may name all its ranks alike.
void TcpTransport::add_loopback() {
  auto self = std::make_unique<Peer>();
  self->process = own_address_.process;
  self->name = "this process";
  self->is_self = true;
  ids_[own_address_.process] = 0;
  peers_.set(0, std::move(self));
}

TcpTransport::~TcpTransport() {
  if (::getpid() == pid_) leave();
}

void TcpTransport::leave() {
  const Deadline deadline = Deadline::after_ms(clock_, kLeaveMs);
  while (true) {
    poll();
    bool all_have_left = true;
    for (PeerId id = 1; peers_.at(id) != nullptr; ++id) all_have_left &= has_left(*peers_.at(id));
    if (all_have_left || deadline.passed(clock_)) return;
    ::usleep(kLookAgainUs);
  }
}

// Behind all that was sent to the peer: its host has it all, or it has left itself. Only then may
// the connection be closed: what it has sent, and nobody reads here, would make that a reset, which
// takes back what is under way.
bool TcpTransport::has_left(Peer& peer) {
  if (!peer.alive()) return true;
  if (!peer.said_goodbye && peer.streams[0]->out.has_room()) {
    push_control(peer, FrameHead{.kind = FrameKind::Bye}, nullptr, 0);
    peer.said_goodbye = true;
    write(peer);
    if (!peer.alive()) return true;
  }
  return peer.said_goodbye &&
         std::all_of(peer.streams.begin(), peer.streams.end(), [](const auto& stream) {
           return stream->out.empty() && !tcp::has_unacknowledged(stream->fd.get());
         });
}

Status TcpTransport::fence(PeerId id, Deadline) {
  Peer& peer = peer_at(id);
  if (peer.is_self) {
    return Status(StatusCode::InvalidArgument, "a process cannot cut itself off");
  }
  lose(peer, PeerState::Broken,
       Status(StatusCode::PeerFailed, peer.name + " was cut off from this process"));
  return Status();
}

// Closes the connections, and with them what has come and is not read.
void TcpTransport::lose(Peer& peer, PeerState state, Status why) {
  if (!peer.alive()) return;
  note_end(peer.id, std::move(why));
  peer.state.store(state, std::memory_order_release);
  for (const auto& stream : peer.streams) {
    ::epoll_ctl(data_set_.get(), EPOLL_CTL_DEL, stream->fd.get(), nullptr);
    stream->fd.reset();
  }
  constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
  peer.sends.raise_done(kAll);
  peer.gets.transfers.raise_done(kAll);
  errands_.note();  // regions may be free now
}

void TcpTransport::lose_at_end(Peer& peer, int error) {
  if (peer.said_goodbye) {
    return lose(peer, PeerState::Gone, Status(StatusCode::PeerFailed, peer.name + " left"));
  }
  const std::string why = error == 0 ? " ended"
                          : error == ECONNRESET || error == EPIPE
                              ? " ended (its host has reset the connection)"
                              : std::string(" is lost: ") + std::strerror(error);
  lose(peer, PeerState::Gone, Status(StatusCode::PeerFailed, peer.name + why));
}

}  // namespace rdmacoll
