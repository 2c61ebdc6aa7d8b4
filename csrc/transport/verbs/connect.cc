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

using verbs::Hello;
using verbs::QueuePair;
using verbs::SignalRing;
using verbs::VerbsCard;

namespace {

// A handshake may be lost, or come before the other side listens.
constexpr int64_t kHelloAgainMs = 20;
constexpr int64_t kHelloAgainMostMs = 500;
constexpr size_t kMaxStrangers = verbs::kMaxPeers;
constexpr int kFirstCompletions = 1 << 12;

// For people: "pid 17 on host h1 at 10.0.0.1".
std::string who_and_where(const VerbsCard& card) {
  return card.who() + " at " +
         (card.port.is_ethernet ? verbs::text_of(card.port.gid)
                                : "LID " + std::to_string(card.port.lid));
}

}  // namespace

Result<PeerId> VerbsTransport::connect(const std::string& address, Deadline deadline) {
  auto card = verbs::parse_verbs_card(address);
  if (!card.ok()) return card.status();
  std::unique_lock lock(mutex_);
  auto admitted = admit(card.value());
  if (!admitted.ok()) return admitted.status();
  Peer& peer = *admitted.value();
  int64_t again_ms = kHelloAgainMs;
  while (!peer.knows_me) {
    if (const Status failure = peer_status(peer.id); !failure.ok()) return failure;
    if (!device_failure_.ok()) return device_failure_;
    if (!door_failure_.ok()) return door_failure_;
    if (deadline.passed(clock_)) return timed_out(peer);
    say_hello(peer);
    met_.wait_for(lock, std::chrono::milliseconds(std::min(again_ms, deadline.left_ms(clock_))));
    again_ms = std::min(2 * again_ms, kHelloAgainMostMs);
  }
  return peer.id;
}

bool VerbsTransport::called_by(const std::string& address) const {
  auto card = verbs::parse_verbs_card(address);
  const std::lock_guard lock(mutex_);
  return card.ok() && early_hellos_.contains(card.value().process);
}

// The peer of a card, with queue pairs, but not joined yet.
Result<VerbsTransport::Peer*> VerbsTransport::admit(const VerbsCard& card) {
  if (const auto known = ids_.find(card.process); known != ids_.end()) {
    return peers_.at(known->second);
  }
  if (card.port.is_ethernet != card_.port.is_ethernet) {
    return Status(StatusCode::Unsupported, card.who() + " is on " +
                                               (card.port.is_ethernet ? "Ethernet" : "InfiniBand") +
                                               ", this process on " + device_->describe());
  }
  if (peer_count_ == verbs::kMaxPeers) {
    return Status(StatusCode::Unsupported, "a process can meet " +
                                               std::to_string(verbs::kMaxPeers) +
                                               " others in its life, and this one has");
  }
  auto made = std::make_unique<Peer>();
  Peer* peer = made.get();
  peer->id = peer_count_;
  peer->card = card;
  peer->is_self = card.process == card_.process;
  if (Status equipped = equip(peer); !equipped.ok()) {
    peer->stripes.clear();
    discard(*peer);
    return equipped;
  }
  ids_[card.process] = peer_count_;
  peers_.set(peer_count_++, std::move(made));
  Hello first;
  if (peer->is_self) {  // joined to itself
    first.knows = Hello::Knows::Both;
    first.packet_sequence = peer->packet_sequence;
    first.signal_ring_address = reinterpret_cast<uint64_t>(peer->signal_ring_memory->data());
    first.signal_ring_rkey = peer->signal_ring_registered->rkey;
    first.stripes = static_cast<uint32_t>(peer->stripes.size());
    for (size_t i = 0; i < peer->stripes.size(); ++i) first.numbers[i] = peer->stripes[i]->number();
    hear(peer, first);
  } else if (const auto handshake = early_hellos_.find(card.process);
             handshake != early_hellos_.end()) {
    first = handshake->second;
    early_hellos_.erase(handshake);
    hear(peer, first);
  }
  return peer;
}

// Memory for its signal ring, the way to its listener, and queue pairs.
Status VerbsTransport::equip(Peer* peer) {
  uint32_t sequence = 0;
  if (::getrandom(&sequence, sizeof(sequence), 0) != sizeof(sequence)) {
    return Status::from_errno("getrandom", errno);
  }
  peer->packet_sequence = sequence & 0xFFFFFF;  // its width on the wire
  auto memory = SharedSegment::create(sizeof(SignalRing));
  if (!memory.ok()) return memory.status();
  peer->signal_ring_memory = std::make_unique<SharedSegment>(memory.take());
  for (auto& room : reinterpret_cast<SignalRing*>(peer->signal_ring_memory->data())->rooms) {
    room.store(std::bit_cast<uint64_t>(verbs::WindowWord{}));
  }
  auto* const base = peer->signal_ring_memory->data();
  peer->signal_ring_registered =
      table_.reg_mr_iova2(device_->pd(), base, sizeof(SignalRing), reinterpret_cast<uint64_t>(base),
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (peer->signal_ring_registered == nullptr) {
    return registration_error(errno, sizeof(SignalRing), *device_);
  }
  count_registration();
  ibv_ah_attr vector = verbs::address_vector(*device_, peer->card.port, config_);
  peer->door = table_.create_ah(device_->pd(), &vector);
  if (peer->door == nullptr) {
    return call_error("addressing " + who_and_where(peer->card) +
                          " (can that be reached from this device? see RDMACOLL_GID_INDEX)",
                      errno, *device_);
  }
  RDMACOLL_RETURN_IF_ERROR(reserve_completions());
  for (int64_t i = 0; i < config_.queue_pairs; ++i) {
    auto made = QueuePair::create(table_, *device_, completions_, static_cast<uint16_t>(peer->id),
                                  static_cast<uint8_t>(i));
    if (!made.ok()) return made.status();
    peer->stripes.push_back(made.take());
  }
  return Status();
}

// What equip() made, without the queue pairs.
void VerbsTransport::discard(Peer& peer) {
  if (peer.door != nullptr) table_.destroy_ah(peer.door);
  if (peer.signal_ring_registered != nullptr) table_.dereg_mr(peer.signal_ring_registered);
}

// Places in the completion queue for all that the queues of one peer more can complete at once.
Status VerbsTransport::reserve_completions() {
  const int64_t per_queue_pair = verbs::kSendDepth + verbs::kReceiveDepth + verbs::kReceiveBatch;
  const int64_t needed = (peer_count_ + 1) * config_.queue_pairs * per_queue_pair;
  if (needed <= completion_capacity_) return Status();
  const int64_t most = device_->limits().max_cqe;
  if (needed > most) {
    return Status(StatusCode::Unsupported, device_->describe() + " has completion queues of " +
                                               std::to_string(most) + " entries, too few for " +
                                               std::to_string(peer_count_ + 1) + " peers with " +
                                               std::to_string(config_.queue_pairs) +
                                               " queue pairs each; " + "lower RDMACOLL_IB_QPS");
  }
  const int64_t capacity = std::min(
      most, std::max<int64_t>({needed, 2 * int64_t{completion_capacity_}, kFirstCompletions}));
  const int entries = static_cast<int>(capacity);
  if (completions_ == nullptr) {
    completions_ = table_.create_cq(device_->context(), entries, nullptr, channel_, 0);
    if (completions_ == nullptr) {
      return call_error("creating a completion queue of " + std::to_string(entries) + " entries",
                        errno, *device_);
    }
  } else if (const int error = table_.resize_cq(completions_, entries); error != 0) {
    return call_error("growing the completion queue to " + std::to_string(entries) + " entries",
                      error, *device_);
  }
  completion_capacity_ = entries;
  return Status();
}

void VerbsTransport::say_hello(const Peer& peer) {
  Hello hello;
  hello.from = card_.process;
  hello.to = peer.card.process;
  hello.signal_ring_address = reinterpret_cast<uint64_t>(peer.signal_ring_memory->data());
  hello.signal_ring_rkey = peer.signal_ring_registered->rkey;
  hello.packet_sequence = peer.packet_sequence;
  hello.stripes = static_cast<uint32_t>(peer.stripes.size());
  for (size_t i = 0; i < peer.stripes.size(); ++i) hello.numbers[i] = peer.stripes[i]->number();
  hello.knows = peer.knows_me               ? Hello::Knows::Both
                : peer.heard_hello          ? Hello::Knows::Yours
                : peer_status(peer.id).ok() ? Hello::Knows::Nothing
                                            : Hello::Knows::Refuses;
  if (Status signed_it = hello.sign(key_); !signed_it.ok()) {
    door_failure_ = std::move(signed_it);
    return met_.notify_all();
  }
  count_control_message();
  listener_->send(peer.door, peer.card.door, peer.card.door_key, &hello, sizeof(hello));
}

void VerbsTransport::hear_datagram(const std::byte* data, size_t bytes) {
  const std::optional<Hello> hello = verbs::parse_hello(data, bytes);
  if (!hello || hello->to != card_.process) return;  // before a signature is computed
  const bool of_this_job = hello->holds(key_);
  const std::lock_guard lock(mutex_);
  if (leaving_) return;
  const auto known = ids_.find(hello->from);
  Peer* const peer = known != ids_.end() ? peers_.at(known->second) : nullptr;
  if (!of_this_job) {  // anybody can send one: it changes nothing but what is said in the end
    if (peer != nullptr) peer->forged = true;
  } else if (peer != nullptr) {
    hear(peer, *hello);
  } else if (early_hellos_.size() < kMaxStrangers) {
    early_hellos_.insert_or_assign(hello->from, *hello);
  }
}

void VerbsTransport::hear(Peer* peer, const Hello& hello) {
  if (peer_status(peer->id).ok()) {
    if (Status joined = join(peer, hello); !joined.ok()) {
      note_end(peer->id, std::move(joined));
      peer->state.store(PeerState::Broken, std::memory_order_release);
    }
  } else if (peer->heard_hello) {
    return;  // lost since they met
  }
  const bool heard_of_me = hello.knows == Hello::Knows::Yours || hello.knows == Hello::Knows::Both;
  if (heard_of_me && peer_status(peer->id).ok()) peer->knows_me = true;
  if (hello.knows == Hello::Knows::Nothing || hello.knows == Hello::Knows::Yours) say_hello(*peer);
  met_.notify_all();
}

Status VerbsTransport::join(Peer* peer, const Hello& hello) {
  if (peer->heard_hello && hello.knows != Hello::Knows::Refuses) return Status();
  if (hello.stripes != peer->stripes.size()) {
    return Status(StatusCode::Mismatch, peer->card.who() + " has " + std::to_string(hello.stripes) +
                                            " queue pairs per peer, this process " +
                                            std::to_string(peer->stripes.size()) +
                                            "; set RDMACOLL_IB_QPS alike");
  }
  if (hello.knows == Hello::Knows::Refuses) {
    return Status(StatusCode::PeerFailed, peer->card.who() +
                                              " cannot join its queue pairs to those of this "
                                              "process; its own error says why");
  }
  for (size_t i = 0; i < peer->stripes.size(); ++i) {
    RDMACOLL_RETURN_IF_ERROR(peer->stripes[i]->connect(
        peer->card.port, hello.numbers[i], hello.packet_sequence, peer->packet_sequence, config_));
  }
  peer->its_signal_ring = {hello.signal_ring_address, hello.signal_ring_rkey};
  peer->heard_hello = true;
  peer->state.store(PeerState::Alive, std::memory_order_release);
  return Status();
}

Status VerbsTransport::timed_out(const Peer& peer) const {
  if (peer.forged && !peer.heard_hello) {
    return Status(StatusCode::Mismatch, who_and_where(peer.card) +
                                            " did not answer in time with the secret of this job; "
                                            "somebody spoke in its name without it: " +
                                            kAboutSecrets);
  }
  const std::string what =
      peer.heard_hello
          ? "it has answered, but does not know this process yet"
          : "no answer; its process may have ended, or its address may not be reachable "
            "from here: compare the GIDs of both sides (rdmacoll info), see "
            "RDMACOLL_GID_INDEX and RDMACOLL_HCA";
  return Status(StatusCode::Timeout, who_and_where(peer.card) + " was not reached in time from " +
                                         device_->describe() + ": " + what);
}

void VerbsTransport::hear_event(const ibv_async_event& event) {
  const std::string text = describe_event(event, *device_);
  const Gravity gravity = gravity_of(event);
  log_.write(gravity == Gravity::Notice ? LogLevel::Info : LogLevel::Warn, text);
  const std::lock_guard lock(mutex_);
  if (event.event_type == IBV_EVENT_PORT_ACTIVE) trouble_.clear();
  if (gravity == Gravity::Notice) return;
  trouble_ = text;
  if (gravity != Gravity::Fatal) return;
  device_failure_ = Status(StatusCode::System, text);
  errands_.store(true, std::memory_order_relaxed);
  met_.notify_all();
  wake_fd_.ring();
}

void VerbsTransport::hear_closed(const Status& why) {
  log_.write(LogLevel::Error, why.message());
  const std::lock_guard lock(mutex_);
  door_failure_ = why;
  met_.notify_all();
}

}  // namespace rdmacoll
