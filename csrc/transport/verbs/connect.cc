// VerbsTransport: how two processes join their queue pairs. Floor: transport/verbs. Thread: set-up
// and the listener; all under the mutex.
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/transport/verbs/device/device_choice.h"
#include "csrc/transport/verbs/device/errors.h"
#include "csrc/transport/verbs/transport.h"

namespace rdmacoll {

using verbs::Address;
using verbs::Hello;
using verbs::PeerHandshake;
using verbs::QueuePair;
using verbs::SignalRing;

namespace {

// A handshake may be lost, or come before the other side listens.
constexpr int64_t kHelloAgainMs = 20;
constexpr int64_t kHelloAgainMostMs = 500;
// An offer goes another way than the word that it was made, and may come later.
constexpr int64_t kOfferAgainNs = 200'000;

// For people: "pid 17 on host h1 at 10.0.0.1".
std::string who_and_where(const Address& theirs) {
  return theirs.who() + " at " +
         (theirs.port.is_ethernet ? verbs::text_of(theirs.port.gid)
                                  : "LID " + std::to_string(theirs.port.lid));
}

}  // namespace

Result<PeerId> VerbsTransport::connect(const std::string& address, Deadline deadline) {
  auto theirs = verbs::parse_address(address);
  if (!theirs.ok()) return theirs.status();
  std::unique_lock lock(mutex_);
  auto admitted = admit(theirs.value());
  if (!admitted.ok()) return admitted.status();
  Peer& peer = *admitted.value();
  while (!peer.handshake.knows_me) {
    if (const Status failure = peer_status(peer.id); !failure.ok()) return failure;
    RDMACOLL_RETURN_IF_ERROR(failures_.device);
    RDMACOLL_RETURN_IF_ERROR(failures_.listener);
    say_hello_again(&peer);
    const int64_t left_ms = deadline.left_ms(clock_);
    if (left_ms == 0) return timed_out(peer);
    changed_.wait_for(lock, std::chrono::milliseconds(std::min(kHelloAgainMs, left_ms)));
  }
  news_.note_met(theirs.value().process);
  RDMACOLL_RETURN_IF_ERROR(peer_status(peer.id));
  return peer.id;
}

bool VerbsTransport::called_by(const std::string& address) const {
  auto theirs = verbs::parse_address(address);
  if (!theirs.ok()) return false;
  const ProcessId& process = theirs.value().process;
  const std::lock_guard lock(mutex_);
  const auto known = met_.find(process);
  return known ? peers_.at(*known)->handshake.heard_hello : met_.has_early_hello(process);
}

// The listener's thread has heard what came. What it has answered may be lost, and connect() need
// not be called again before both sides know.
void VerbsTransport::serve(SetUpReport& report) {
  const std::lock_guard lock(mutex_);
  news_.begin_look();
  for (PeerId id = 0; id < met_.count(); ++id) {
    Peer& peer = *peers_.at(id);
    if (!peer_status(id).ok()) continue;
    // The driver hears them, which whoever serves has do a round.
    if (peer.handshake.misses_offers()) news_.look_again_in_ns(kOfferAgainNs);
    if (!peer.handshake.heard_hello || peer.handshake.knows_me) continue;
    say_hello_again(&peer);
    news_.look_again_in_ns(kHelloAgainMs * 1'000'000);
  }
  news_.take(report);
}

// The peer of this address, with queue pairs, but not joined yet.
Result<VerbsTransport::Peer*> VerbsTransport::admit(const Address& theirs) {
  if (const auto known = met_.find(theirs.process)) return peers_.at(*known);
  if (theirs.port.is_ethernet != own_address_.port.is_ethernet) {
    return Status(StatusCode::Unsupported,
                  theirs.who() + " is on " + (theirs.port.is_ethernet ? "Ethernet" : "InfiniBand") +
                      ", this process on " + device_->describe());
  }
  if (met_.count() == kMaxPeers) {
    return Status(StatusCode::Unsupported, "a process can meet " + std::to_string(kMaxPeers) +
                                               " others in its life, and this one has");
  }
  auto made = std::make_unique<Peer>();
  Peer* peer = made.get();
  peer->id = met_.count();
  peer->address = theirs;
  peer->is_self = theirs.process == own_address_.process;
  if (Status equipped = equip(peer); !equipped.ok()) {
    peer->stripes.clear();
    discard(*peer);
    return equipped;
  }
  peers_.set(met_.add(theirs.process), std::move(made));
  Hello first;
  if (peer->is_self) {  // joined to itself
    first.knows = Hello::Knows::Both;
    first.packet_sequence = peer->handshake.packet_sequence;
    first.signal_ring_address = peer->own_ring.as_remote().address;
    first.signal_ring_rkey = peer->own_ring.as_remote().rkey;
    first.stripes = static_cast<uint32_t>(peer->stripes.size());
    for (size_t i = 0; i < peer->stripes.size(); ++i) first.numbers[i] = peer->stripes[i]->number();
    hear(peer, first);
  } else if (const auto early = met_.take_early_hello(theirs.process)) {
    hear(peer, *early);
  }
  return peer;
}

// Memory for its signal ring, the way to its listener, and queue pairs.
Status VerbsTransport::equip(Peer* peer) {
  uint32_t sequence = 0;
  if (::getrandom(&sequence, sizeof(sequence), 0) != sizeof(sequence)) {
    return Status::from_errno("getrandom", errno);
  }
  peer->handshake.packet_sequence = sequence & 0xFFFFFF;  // its width on the wire
  auto memory = SharedSegment::create(sizeof(SignalRing));
  if (!memory.ok()) return memory.status();
  peer->own_ring.memory = std::make_unique<SharedSegment>(memory.take());
  for (auto& room : peer->own_ring.ring().rooms) {
    room.store(std::bit_cast<uint64_t>(verbs::WindowWord{}));
  }
  auto* const base = peer->own_ring.memory->data();
  peer->own_ring.registered = table().reg_mr_iova2(
      device_->pd(), base, sizeof(SignalRing), reinterpret_cast<uint64_t>(base),
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (peer->own_ring.registered == nullptr) {
    return registration_error(errno, sizeof(SignalRing), *device_);
  }
  count_registration();
  ibv_ah_attr vector = verbs::address_vector(*device_, peer->address.port, config_);
  peer->handshake.way = table().create_ah(device_->pd(), &vector);
  if (peer->handshake.way == nullptr) {
    return call_error("addressing " + who_and_where(peer->address) +
                          " (can that be reached from this device? see RDMACOLL_GID_INDEX)",
                      errno, *device_);
  }
  RDMACOLL_RETURN_IF_ERROR(completions_.reserve(met_.count() + 1, config_.queue_pairs));
  for (int64_t i = 0; i < config_.queue_pairs; ++i) {
    auto made = QueuePair::create(table(), *device_, completions_.get(),
                                  static_cast<uint16_t>(peer->id), static_cast<uint8_t>(i));
    if (!made.ok()) return made.status();
    peer->stripes.push_back(made.take());
  }
  return Status();
}

// What equip() made, without the queue pairs.
void VerbsTransport::discard(Peer& peer) {
  if (peer.handshake.way != nullptr) table().destroy_ah(peer.handshake.way);
  if (peer.own_ring.registered != nullptr) table().dereg_mr(peer.own_ring.registered);
}

// If it is time to.
void VerbsTransport::say_hello_again(Peer* peer) {
  PeerHandshake& handshake = peer->handshake;
  const int64_t now_ns = clock_.now_ns();
  if (now_ns < handshake.hello_at_ns) return;
  say_hello(*peer);
  handshake.hello_after_ms =
      std::clamp(2 * handshake.hello_after_ms, kHelloAgainMs, kHelloAgainMostMs);
  handshake.hello_at_ns = now_ns + handshake.hello_after_ms * 1'000'000;
}

void VerbsTransport::say_hello(const Peer& peer) {
  Hello hello = Hello::from_process(own_address_);
  hello.to = peer.address.process;
  hello.signal_ring_address = peer.own_ring.as_remote().address;
  hello.signal_ring_rkey = peer.own_ring.as_remote().rkey;
  hello.packet_sequence = peer.handshake.packet_sequence;
  hello.stripes = static_cast<uint32_t>(peer.stripes.size());
  for (size_t i = 0; i < peer.stripes.size(); ++i) hello.numbers[i] = peer.stripes[i]->number();
  hello.offers = peer.handshake.offers_made;
  hello.knows = peer.handshake.knows_me      ? Hello::Knows::Both
                : peer.handshake.heard_hello ? Hello::Knows::Yours
                : peer_status(peer.id).ok()  ? Hello::Knows::Nothing
                                             : Hello::Knows::Refuses;
  if (Status signed_it = hello.sign(key_); !signed_it.ok()) {
    failures_.listener = std::move(signed_it);
    return changed_.notify_all();
  }
  count_control_message();
  listener_->send(peer.handshake.way, peer.address.listener, peer.address.listener_key, &hello,
                  sizeof(hello));
}

void VerbsTransport::hear_datagram(const std::byte* data, size_t bytes) {
  const std::optional<Hello> hello = verbs::parse_hello(data, bytes);
  if (!hello || hello->to != own_address_.process) return;  // before a signature is computed
  const bool of_this_job = hello->holds(key_);
  const std::lock_guard lock(mutex_);
  if (!failures_.listener.ok()) return;
  const auto known = met_.find(hello->from);
  Peer* const peer = known ? peers_.at(*known) : nullptr;
  if (!of_this_job) {  // anybody can send one: it changes nothing but what is said in the end
    if (peer != nullptr) peer->handshake.forged = true;
  } else if (peer != nullptr) {
    hear(peer, *hello);
  } else if (met_.keep_early_hello(*hello)) {
    news_.note_caller(hello->from, encode(hello->sender()));
  }
}

void VerbsTransport::hear(Peer* peer, const Hello& hello) {
  if (peer_status(peer->id).ok()) {
    if (Status joined = join(peer, hello); !joined.ok()) {
      note_end(peer->id, std::move(joined));
      peer->state.store(PeerState::Broken, std::memory_order_release);
    }
  } else if (peer->handshake.heard_hello) {
    return;  // lost since they met
  }
  const bool heard_of_me = hello.knows == Hello::Knows::Yours || hello.knows == Hello::Knows::Both;
  const bool knew_me = peer->handshake.knows_me;
  if (heard_of_me && peer_status(peer->id).ok()) peer->handshake.knows_me = true;
  if (peer->handshake.knows_me != knew_me || !peer_status(peer->id).ok()) {
    news_.note_caller(peer->address.process,
                      encode(peer->address));  // connect() has something to say now
  } else if (!knew_me) {
    news_.look_again_in_ns(kHelloAgainMs * 1'000'000);
  }
  peer->handshake.note_told(hello.offers);
  if (peer->handshake.misses_offers()) news_.look_again_in_ns(0);
  if (hello.knows == Hello::Knows::Nothing || hello.knows == Hello::Knows::Yours) say_hello(*peer);
  changed_.notify_all();
}

Status VerbsTransport::join(Peer* peer, const Hello& hello) {
  if (peer->handshake.heard_hello && hello.knows != Hello::Knows::Refuses) return Status();
  if (hello.stripes != peer->stripes.size()) {
    return Status(StatusCode::Mismatch,
                  peer->address.who() + " has " + std::to_string(hello.stripes) +
                      " queue pairs per peer, this process " +
                      std::to_string(peer->stripes.size()) + "; set RDMACOLL_IB_QPS alike");
  }
  if (hello.knows == Hello::Knows::Refuses) {
    return Status(StatusCode::PeerFailed, peer->address.who() +
                                              " cannot join its queue pairs to those of this "
                                              "process; its own error says why");
  }
  for (size_t i = 0; i < peer->stripes.size(); ++i) {
    RDMACOLL_RETURN_IF_ERROR(peer->stripes[i]->connect(peer->address.port, hello.numbers[i],
                                                       hello.packet_sequence,
                                                       peer->handshake.packet_sequence, config_));
  }
  peer->its_ring = {hello.signal_ring_address, hello.signal_ring_rkey};
  peer->handshake.heard_hello = true;
  peer->state.store(PeerState::Alive, std::memory_order_release);
  return Status();
}

Status VerbsTransport::timed_out(const Peer& peer) const {
  if (peer.handshake.forged && !peer.handshake.heard_hello) {
    return Status(StatusCode::Mismatch, who_and_where(peer.address) +
                                            " did not answer in time with the secret of this job; "
                                            "somebody spoke in its name without it: " +
                                            kAboutSecrets);
  }
  const std::string what =
      peer.handshake.heard_hello
          ? "it has answered, but does not know this process yet"
          : "no answer; its process may have ended, or its address may not be reachable "
            "from here: compare the GIDs of both sides (rdmacoll info), see "
            "RDMACOLL_GID_INDEX and RDMACOLL_HCA";
  return Status(StatusCode::Timeout, who_and_where(peer.address) +
                                         " was not reached in time from " + device_->describe() +
                                         ": " + what);
}

void VerbsTransport::hear_event(const ibv_async_event& event) {
  const std::string text = describe_event(event, *device_);
  const Gravity gravity = gravity_of(event);
  log_.write(gravity == Gravity::Notice ? LogLevel::Info : LogLevel::Warn, text);
  const std::lock_guard lock(mutex_);
  if (event.event_type == IBV_EVENT_PORT_ACTIVE) failures_.reported.clear();
  if (gravity == Gravity::Notice) return;
  failures_.reported = text;
  if (gravity != Gravity::Fatal) return;
  failures_.device = Status(StatusCode::System, text);
  errands_.note();
  changed_.notify_all();
  completions_.wake();
}

void VerbsTransport::hear_closed(const Status& why) {
  log_.write(LogLevel::Error, why.message());
  const std::lock_guard lock(mutex_);
  failures_.listener = why;
  changed_.notify_all();
}

}  // namespace rdmacoll
