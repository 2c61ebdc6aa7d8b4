// ShmTransport: opening it, and its regions. Floor: transport/shm.
#include "csrc/transport/shm/shm_transport.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "csrc/transport/shm/host_id.h"
#include "csrc/transport/shm/serve_until.h"

namespace rdmacoll {
namespace {

Result<Card> make_card(const Config& config) {
  Result<std::string> host = host_id(config);
  if (!host.ok()) return host.status();
  Result<ProcessId> process = random_process_id();
  if (!process.ok()) return process.status();
  Result<ProcessId> socket = random_process_id();
  if (!socket.ok()) return socket.status();
  Card card;
  card.host = host.take();
  card.process = process.value();
  card.pid = static_cast<uint32_t>(::getpid());
  card.network_namespace = network_namespace();
  card.socket = "rdmacoll-" + hex(socket.value());
  return card;
}

}  // namespace

Status watch(const UniqueFd& set, int fd, uint32_t events, WatchTag tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag.pack();
  if (::epoll_ctl(set.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Status();
  return Status::from_errno("watching a descriptor", errno);
}

void unwatch(const UniqueFd& set, int fd) { ::epoll_ctl(set.get(), EPOLL_CTL_DEL, fd, nullptr); }

Result<std::unique_ptr<ShmTransport>> ShmTransport::open(const Config& config, const Clock& clock) {
  Result<JobKey> key = JobKey::load(config.secret);
  if (!key.ok()) return key.status();
  Result<Card> card = make_card(config);
  if (!card.ok()) return card.status();
  Result<SharedSegment> control = SharedSegment::create(sizeof(Control));
  if (!control.ok()) return control.status();
  UniqueFd wake_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_fd.valid()) return Status::from_errno("eventfd", errno);
  Result<UniqueFd> listener = PeerSocket::listen(card.value().socket);
  if (!listener.ok()) return listener.status();

  std::unique_ptr<ShmTransport> transport(new ShmTransport(
      clock, key.take(), card.take(), control.take(), std::move(wake_fd), listener.take()));
  RDMACOLL_RETURN_IF_ERROR(transport->watch_own_descriptors());
  RDMACOLL_RETURN_IF_ERROR(transport->add_loopback());
  return transport;
}

ShmTransport::ShmTransport(const Clock& clock, JobKey key, Card card, SharedSegment control,
                           UniqueFd wake_fd, UniqueFd listener)
    : clock_(clock),
      key_(std::move(key)),
      card_(std::move(card)),
      pid_(::getpid()),
      control_segment_(std::move(control)),
      control_(*reinterpret_cast<Control*>(control_segment_.data())),
      wake_fd_(std::move(wake_fd)),
      listener_(std::move(listener)),
      meeting_set_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_set_(::epoll_create1(EPOLL_CLOEXEC)) {}

ShmTransport::~ShmTransport() { shutdown(); }

Status ShmTransport::watch_own_descriptors() {
  if (!meeting_set_.valid() || !wake_set_.valid()) return Status::from_errno("epoll_create", errno);
  RDMACOLL_RETURN_IF_ERROR(watch(meeting_set_, listener_.get(), EPOLLIN, {Watched::Listener}));
  return watch(wake_set_, wake_fd_.get(), EPOLLIN, {Watched::Wake});
}

// This process is its own peer 0, so that a group may name all its ranks alike.
Status ShmTransport::add_loopback() {
  UniqueFd wake_fd(::dup(wake_fd_.get()));
  if (!wake_fd.valid()) return Status::from_errno("dup", errno);
  Result<SharedSegment> control =
      SharedSegment::map(UniqueFd(::dup(control_segment_.fd())), sizeof(Control));
  if (!control.ok()) return control.status();
  auto self = std::make_unique<Peer>(control.take(), std::move(wake_fd), PeerSocket(UniqueFd()));
  self->process = card_.process;
  self->name = "this process";
  self->same_process = true;
  ids_[card_.process] = peer_count_;
  peers_.set(peer_count_++, std::move(self));
  return Status();
}

Status ShmTransport::register_region(RegionId region, std::shared_ptr<SharedSegment> memory) {
  const std::lock_guard lock(mutex_);
  RDMACOLL_CHECK(region < kMaxRegions && memory != nullptr);
  const bool added = regions_.emplace(region, std::move(memory)).second;
  RDMACOLL_CHECK(added);
  return Status();
}

std::string ShmTransport::region_key(RegionId region) const {
  const std::lock_guard lock(mutex_);
  return encode(RegionKey{card_.process, region, my_region(region)->bytes()});
}

const std::shared_ptr<SharedSegment>& ShmTransport::my_region(RegionId region) const {
  const auto found = regions_.find(region);
  RDMACOLL_CHECK(found != regions_.end());
  return found->second;
}

Status ShmTransport::offer_region(PeerId id, RegionId region) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<SharedSegment>& segment = my_region(region);
  Peer& peer = peer_at(id);
  if (!peer.alive()) return peer.failure;
  if (!peer.socket.valid()) {  // loopback
    peer.offers.insert_or_assign(region, segment);
    return Status();
  }
  Message message;
  message.kind = MessageKind::Region;
  message.region = region;
  message.bytes = segment->bytes();
  message.sender = card_.process;
  if (!peer.same_process) return peer.socket.send(message, {segment->fd()});
  auto reference = std::make_unique<std::shared_ptr<SharedSegment>>(segment);
  message.reference = reinterpret_cast<uint64_t>(reference.get());
  RDMACOLL_RETURN_IF_ERROR(peer.socket.send(message, {}));
  reference.release();  // the receiver's now
  return Status();
}

Status ShmTransport::open_region(PeerId id, const std::string& key_bytes, Deadline deadline) {
  Result<RegionKey> parsed = parse_region_key(key_bytes);
  if (!parsed.ok()) return parsed.status();
  const RegionKey key = parsed.value();
  Peer& peer = peer_at(id);
  if (key.owner != peer.process || key.region >= kMaxRegions) {
    return Status(StatusCode::InvalidArgument, "the region key is not one of " + peer.name);
  }
  Status outcome;
  const bool in_time = serve_until(deadline, [&] {
    if (peer.regions.at(key.region) != nullptr) return true;
    const auto offer = peer.offers.find(key.region);
    if (offer == peer.offers.end()) {
      if (!peer.alive()) outcome = peer.failure;
      return !outcome.ok();
    }
    Result<std::shared_ptr<SharedSegment>> offered = std::move(offer->second);
    peer.offers.erase(offer);
    if (!offered.ok()) {
      outcome = offered.status();
    } else if (offered.value()->bytes() != key.bytes) {
      outcome =
          Status(StatusCode::InvalidArgument,
                 "the key of a region of " + peer.name + " says " + std::to_string(key.bytes) +
                     " bytes, its memory has " + std::to_string(offered.value()->bytes()));
    } else {
      const Region view{key.region, offered.value()->data(), key.bytes};
      peer.regions.set(key.region, std::make_unique<OpenRegion>(OpenRegion{view, offered.take()}));
    }
    return true;
  });
  if (in_time) return outcome;
  return Status(StatusCode::Timeout,
                peer.name + " did not offer its region " + std::to_string(key.region) + " in time");
}

uint64_t ShmTransport::opened_bytes(PeerId peer, RegionId region) const {
  const OpenRegion* open = peer_at(peer).regions.at(region);
  return open != nullptr ? open->view.bytes : 0;
}

void ShmTransport::close_region(PeerId peer, RegionId region) {
  const std::lock_guard lock(mutex_);
  peer_at(peer).regions.take(region);
}

void ShmTransport::release_region(RegionId region) {
  const std::lock_guard lock(mutex_);
  regions_.erase(region);
}

}  // namespace rdmacoll
