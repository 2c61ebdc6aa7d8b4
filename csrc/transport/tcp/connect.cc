// TcpTransport: how two processes meet. Floor: transport/tcp. Thread: set-up; under the mutex.
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "csrc/transport/tcp/transport.h"

namespace rdmacoll {

using tcp::Stream;

// Whoever waits serves all sockets of set-up, so that processes may connect to each other in any
// order.
template <typename Ready>
bool TcpTransport::serve_until(Deadline deadline, Ready ready) {
  // Another thread may take the very message that this one waits for: look again soon.
  static constexpr int64_t kLookAgainMs = 2;
  while (true) {
    bool is_for_others = false;  // what wakes
    {
      const std::lock_guard lock(mutex_);
      connector_->serve();
      if (ready()) return true;
      is_for_others = news_.rings_for_others();
    }
    const int64_t left_ms = deadline.left_ms(clock_);
    if (left_ms == 0) return false;
    const int64_t wait_ms = std::min(left_ms, kLookAgainMs);
    if (is_for_others) {
      ::poll(nullptr, 0, static_cast<int>(wait_ms));
    } else {
      connector_->wait(wait_ms);
    }
  }
}

Result<PeerId> TcpTransport::connect(const std::string& address, Deadline deadline) {
  auto parsed = tcp::parse_address(address);
  if (!parsed.ok()) return parsed.status();
  const tcp::Address theirs = parsed.take();
  PeerId id = 0;
  Status outcome;
  const bool in_time = serve_until(deadline, [&] {
    if (const auto known = ids_.find(theirs.process); known != ids_.end()) {
      id = known->second;
      outcome = peer_status(id);
      news_.note_met(theirs.process);
      return true;
    }
    if (auto connections = connector_->take_met(theirs.process)) {
      id = static_cast<PeerId>(ids_.size());
      outcome = admit(id, theirs, std::move(*connections));
      news_.note_met(theirs.process);
      return true;
    }
    connector_->meet(theirs);
    outcome = connector_->failure_of(theirs.process);
    if (outcome.ok()) return false;
    outcome = Status(outcome.code(), theirs.who() + " cannot be reached: " + outcome.message());
    connector_->forget(theirs.process);
    return true;
  });
  if (in_time) return outcome.ok() ? Result<PeerId>(id) : Result<PeerId>(outcome);
  const std::lock_guard lock(mutex_);
  return timed_out(theirs);
}

Status TcpTransport::timed_out(const tcp::Address& theirs) const {
  return Status(StatusCode::Timeout,
                theirs.who() + " (" + tcp::text_of(theirs.endpoints) + ") and this process (" +
                    tcp::text_of(own_address_.endpoints) +
                    ") were not connected in time; it may be late, stuck or dead, or a firewall "
                    "lies between (RDMACOLL_SOCKET_IFNAME and RDMACOLL_TCP_PORTS say where both "
                    "listen)" +
                    connector_->why_not(theirs.process));
}

// Asked beside a wait in another transport, which serves nothing here.
bool TcpTransport::called_by(const std::string& address) const {
  auto theirs = tcp::parse_address(address);
  if (!theirs.ok()) return false;
  const std::lock_guard lock(mutex_);
  connector_->serve();
  return ids_.contains(theirs.value().process) || connector_->is_called_by(theirs.value().process);
}

// What it is woken by is taken before it looks, so that what comes meanwhile wakes it again.
void TcpTransport::serve(SetUpReport& report) {
  const std::lock_guard lock(mutex_);
  connector_->wait(0);
  connector_->serve();
  news_.take(report);
}

Status TcpTransport::admit(PeerId id, const tcp::Address& theirs, tcp::Connections connections) {
  if (id == kMaxPeers) {
    return Status(StatusCode::Unsupported,
                  "a process can meet " + std::to_string(kMaxPeers - 1) + " others");
  }
  auto peer = std::make_unique<Peer>();
  peer->id = id;
  peer->process = theirs.process;
  peer->name = theirs.who();
  for (tcp::Connection& connection : connections) {
    RDMACOLL_RETURN_IF_ERROR(tcp::set_up_connection(connection.fd.get(), config_.timeout_ms));
    peer->streams.push_back(std::make_unique<Stream>(std::move(connection.fd), connection.keys));
    peer->streams.back()->watched = EPOLLIN | EPOLLRDHUP;
  }
  const Peer& made = *peer;
  peers_.set(id, std::move(peer));
  ids_[theirs.process] = id;
  count_control_message();
  for (size_t i = 0; i < made.streams.size(); ++i) {
    epoll_event event{};
    event.events = made.streams[i]->watched;
    event.data.u64 = tcp::EventTag{id, static_cast<uint32_t>(i)}.pack();
    if (::epoll_ctl(data_set_.get(), EPOLL_CTL_ADD, made.streams[i]->fd.get(), &event) != 0) {
      return Status::from_errno("watching a connection", errno);
    }
  }
  return Status();
}

}  // namespace rdmacoll
