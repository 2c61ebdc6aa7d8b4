// ShmTransport: regions, mine and peers', and what is said of them. Floor: transport/shm. Thread:
// set-up; all under the mutex but for what the driver looks up.
#include <utility>

#include "csrc/transport/shm/serve_until.h"
#include "csrc/transport/shm/transport.h"

namespace rdmacoll {

Result<std::string> ShmTransport::register_region(RegionId region, const RegionMemory& memory) {
  RDMACOLL_CHECK(region < kMaxRegions && memory.segment != nullptr);
  RDMACOLL_CHECK(!has_short_key(memory.access) && memory.bytes == memory.segment->bytes());
  RDMACOLL_CHECK(takes_puts(memory.access) == (memory.segment->others() == Others::Write));
  const std::lock_guard lock(mutex_);
  const Generation generation = ++generations_;
  const bool added =
      regions_.emplace(region, MyRegion{{.generation = generation}, memory.segment}).second;
  RDMACOLL_CHECK(added);
  return encode(RegionKey{own_address_.process, region, generation, memory.bytes});
}

ShmTransport::MyRegion& ShmTransport::my_region(RegionId region) {
  const auto found = regions_.find(region);
  RDMACOLL_CHECK(found != regions_.end() && !found->second.lease.released);
  return found->second;
}

Status ShmTransport::offer_region(PeerId id, RegionId region, uint64_t note) {
  RDMACOLL_CHECK(region != kNoRegion || note != kNoNote);
  const std::lock_guard lock(mutex_);
  Peer& peer = peer_at(id);
  RDMACOLL_RETURN_IF_ERROR(peer_status(id));
  Message message =
      message_about(region == kNoRegion ? MessageKind::Note : MessageKind::Region, region, 0);
  message.note = note;
  std::shared_ptr<SharedSegment> memory;
  if (region != kNoRegion) {
    MyRegion& mine = my_region(region);
    mine.lease.offered(id);
    message.generation = mine.lease.generation;
    memory = mine.memory;
    message.bytes = memory->bytes();
  }
  if (peer.socket.valid()) return tell(&peer, message, std::move(memory));
  if (memory != nullptr) {
    peer.offers.insert_or_assign(region, OfferedRegion{message.generation, std::move(memory)});
  }
  return hand_over(&peer, message);
}

Result<Region> ShmTransport::open_region(PeerId id, std::string_view key_bytes, Deadline deadline) {
  Result<RegionKey> parsed = parse_region_key(key_bytes);
  if (!parsed.ok()) return parsed.status();
  const RegionKey key = parsed.value();
  Peer& peer = peer_at(id);
  if (key.owner != peer.process || key.region >= kMaxRegions) {
    return Status(StatusCode::InvalidArgument, "the region key is not one of " + peer.name);
  }
  Result<OpenRegion*> open = nullptr;
  const bool in_time = serve_until(deadline, [&] {
    open = open_offered(&peer, key);
    return !open.ok() || open.value() != nullptr;
  });
  if (!open.ok()) return open.status();
  if (in_time) return open.value()->view;
  return Status(StatusCode::Timeout,
                peer.name + " did not offer its region " + std::to_string(key.region) + " in time");
}

Result<OpenRegion*> ShmTransport::open_offered(Peer* peer, const RegionKey& key) {
  if (OpenRegion* open = peer->regions.at(key.region)) {
    if (open->generation == key.generation) return open;
    return Status(StatusCode::InvalidArgument,
                  "the key of a region of " + peer->name +
                      " belongs to an earlier or later use of its id than the region that is open");
  }
  if (peer->withdrawn.has(key.region, key.generation)) return withdrawn_by(peer->name);
  const auto offer = peer->offers.find(key.region);
  if (offer == peer->offers.end() || offer->second.generation != key.generation) {
    RDMACOLL_RETURN_IF_ERROR(peer_status(peer->id));
    return nullptr;
  }
  Result<std::shared_ptr<SharedSegment>> offered = std::move(offer->second.memory);
  peer->offers.erase(offer);
  if (!offered.ok()) return offered.status();
  if (offered.value()->bytes() != key.bytes) {
    return Status(StatusCode::InvalidArgument,
                  "the key of a region of " + peer->name + " says " + std::to_string(key.bytes) +
                      " bytes, its memory has " + std::to_string(offered.value()->bytes()));
  }
  const Region view{key.region, offered.value()->data(), key.bytes};
  peer->regions.set(key.region,
                    std::make_unique<OpenRegion>(OpenRegion{view, key.generation, offered.take()}));
  return peer->regions.at(key.region);
}

void ShmTransport::close_region(PeerId id, RegionId region, std::string_view key_bytes) {
  std::optional<Generation> use;
  if (!key_bytes.empty()) {
    Result<RegionKey> key = parse_region_key(key_bytes);
    if (!key.ok()) return;
    use = key.value().generation;
  }
  const std::lock_guard lock(mutex_);
  Peer& peer = peer_at(id);
  if (const OpenRegion* open = peer.regions.at(region); open != nullptr) {
    if (use && *use != open->generation) return;
    return tell_closed(&peer, region, peer.regions.take(region)->generation);
  }
  const auto offer = peer.offers.find(region);
  if (!use || offer == peer.offers.end() || offer->second.generation != *use) return;
  tell_closed(&peer, region, offer->second.generation);
  peer.offers.erase(offer);
}

void ShmTransport::release_region(RegionId region, Release how) {
  const std::lock_guard lock(mutex_);
  MyRegion& mine = my_region(region);
  mine.lease.released = true;
  mine.memory.reset();
  // A copy: where a reader is this process itself, its answer changes the lease at once.
  if (how == Release::Withdraw) withdraw(region, Lease(mine.lease));
  forget_if_unread(region);
}

void ShmTransport::withdraw(RegionId region, const Lease& lease) {
  for (const PeerId id : lease.readers) {
    Peer& peer = peer_at(id);
    if (peer.socket.valid()) {
      // Where this fails the peer has ended, which is as good.
      [[maybe_unused]] const Status told =
          tell(&peer, message_about(MessageKind::Withdrawn, region, lease.generation));
    } else {
      hear_withdrawn(&peer, region, lease.generation);
    }
  }
}

bool ShmTransport::is_reusable(RegionId region) {
  const std::lock_guard lock(mutex_);
  if (forget_if_unread(region)) return true;
  look();
  return forget_if_unread(region);
}

// Forgets a region that is released and that no living peer has; whether it is forgotten. A peer
// that has ended writes no more. One that was given up because it sent nonsense may have this
// region mapped still, but never gets the next one of the same id.
bool ShmTransport::forget_if_unread(RegionId region) {
  const auto found = regions_.find(region);
  if (found == regions_.end()) return true;
  Lease& lease = found->second.lease;
  std::erase_if(lease.readers, [&](PeerId id) { return !peer_at(id).alive(); });
  if (!lease.released || !lease.readers.empty()) return false;
  regions_.erase(found);
  return true;
}

// --- what is said of regions ---------------------------------------------------------------------

// Why the peer is lost by that; Ok: it is not.
Status ShmTransport::hear_of_region(Peer* peer, Incoming incoming) {
  const Message& message = incoming.message;
  const bool is_note = message.kind == MessageKind::Note;
  if (is_note ? message.note == kNoNote : message.region >= kMaxRegions) {
    return makes_no_sense(peer->name);
  }
  switch (message.kind) {
    case MessageKind::Region:
      if (!keep_offer(peer, &incoming)) return makes_no_sense(peer->name);
      [[fallthrough]];
    case MessageKind::Note:
      return hand_over(peer, message);
    case MessageKind::Closed:
      hear_closed(peer->id, message.region, message.generation);
      return Status();
    case MessageKind::Withdrawn:
      hear_withdrawn(peer, message.region, message.generation);
      return Status();
    default:
      return makes_no_sense(peer->name);
  }
}

// An offer with a note, to who calls serve().
Status ShmTransport::hand_over(Peer* peer, const Message& offer) {
  if (offer.note == kNoNote) return Status();
  RegionOffer made{.peer = peer->id, .note = offer.note};
  if (offer.kind == MessageKind::Region) {
    made.region = offer.region;
    made.key = encode(RegionKey{peer->process, offer.region, offer.generation, offer.bytes});
  }
  return news_.add(std::move(made)) ? Status() : offers_too_much(peer->name);
}

// Regions may be offered before they are asked for. They are mapped at once: descriptors are
// scarce.
bool ShmTransport::keep_offer(Peer* peer, Incoming* incoming) {
  const Message& message = incoming->message;
  if (message.reference != 0) {
    if (!peer->same_process) return false;
    peer->offers.insert_or_assign(
        message.region, OfferedRegion{message.generation, std::move(*take_reference(message))});
    return true;
  }
  Result<SharedSegment> segment = SharedSegment::map(incoming->descriptors[0], message.bytes);
  using Memory = Result<std::shared_ptr<SharedSegment>>;
  Memory memory = segment.ok() ? Memory(std::make_shared<SharedSegment>(segment.take()))
                               : Memory(segment.status());
  peer->offers.insert_or_assign(message.region,
                                OfferedRegion{message.generation, std::move(memory)});
  return true;
}

// Where the region is open, the answer comes when it is closed.
void ShmTransport::hear_withdrawn(Peer* peer, RegionId region, Generation generation) {
  const OpenRegion* open = peer->regions.at(region);
  if (open != nullptr && open->generation == generation) return;
  const auto offer = peer->offers.find(region);
  if (offer != peer->offers.end() && offer->second.generation <= generation) {
    peer->offers.erase(offer);
  }
  peer->withdrawn.add(region, generation);
  tell_closed(peer, region, generation);
}

void ShmTransport::hear_closed(PeerId peer, RegionId region, Generation generation) {
  const auto found = regions_.find(region);
  if (found != regions_.end()) found->second.lease.closed(peer, generation);
}

void ShmTransport::tell_closed(Peer* peer, RegionId region, Generation generation) {
  if (!peer->socket.valid()) return hear_closed(peer->id, region, generation);  // loopback
  [[maybe_unused]] const Status told =
      tell(peer, message_about(MessageKind::Closed, region, generation));
}

Message ShmTransport::message_about(MessageKind kind, RegionId region,
                                    Generation generation) const {
  Message message;
  message.kind = kind;
  message.region = region;
  message.generation = generation;
  message.sender = own_address_.process;
  return message;
}

// What the socket has no room for is sent later, in the same order, by look().
Status ShmTransport::tell(Peer* peer, const Message& message,
                          std::shared_ptr<SharedSegment> memory) {
  peer->unsent.push_back({message, std::move(memory)});
  if (peer->unsent.size() > 1) return Status();  // behind others
  Result<bool> sent = send_unsent(peer);
  if (!sent.ok() || sent.value()) return sent.status();
  blocked_.push_back(peer->id);
  news_.look_again_in_ns(0);
  return Status();
}

// Whether nothing is left to be sent.
Result<bool> ShmTransport::send_unsent(Peer* peer) {
  while (!peer->unsent.empty() && peer->alive()) {
    auto& [message, memory] = peer->unsent.front();
    Reference reference;
    Result<bool> sent = false;
    if (memory == nullptr) {
      sent = peer->socket.try_send(message, {});
    } else if (peer->same_process) {
      reference = std::make_unique<std::shared_ptr<SharedSegment>>(memory);
      message.reference = reinterpret_cast<uint64_t>(reference.get());
      sent = peer->socket.try_send(message, {});
    } else {
      sent = peer->socket.try_send(message, {memory->fd()});
    }
    if (sent.ok() && !sent.value()) return false;
    peer->unsent.pop_front();
    if (!sent.ok()) return sent.status();
    static_cast<void>(reference.release());  // the receiver's now
  }
  peer->unsent.clear();
  return true;
}

}  // namespace rdmacoll
