// VerbsTransport: opening and leaving, sleep, and what a peer's state is.
// Floor: transport/verbs. Thread: transport.h.
#include "csrc/transport/verbs/transport.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/base/host_name.h"
#include "csrc/transport/verbs/device/errors.h"
#include "csrc/transport/verbs/open_verbs.h"

namespace rdmacoll {
namespace {

Status add_to_set(const UniqueFd& set, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(set.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Status();
  return Status::from_errno("watching a descriptor", errno);
}

}  // namespace

Result<std::unique_ptr<VerbsTransport>> VerbsTransport::open(const VerbsTable& table,
                                                             const Config& config,
                                                             const Clock& clock) {
  auto key = JobKey::load(config.secret.text);
  if (!key.ok()) return key.status();
  auto settings = VerbsConfig::read(config.settings);
  if (!settings.ok()) return settings.status();
  auto owned_table = std::make_unique<const VerbsTable>(table);
  auto device = Device::open(*owned_table, config);
  if (!device.ok()) return device.status();
  std::unique_ptr<VerbsTransport> transport(
      new VerbsTransport(std::move(owned_table), settings.take(), Log(config.log_level, "verbs"),
                         key.take(), clock, device.take()));
  RDMACOLL_RETURN_IF_ERROR(transport->open_queues());
  RDMACOLL_RETURN_IF_ERROR(transport->start_queue_pair());
  return transport;
}

VerbsTransport::VerbsTransport(std::unique_ptr<const VerbsTable> table, VerbsConfig config, Log log,
                               JobKey key, const Clock& clock, std::unique_ptr<Device> device)
    : owned_table_(std::move(table)),
      table_(*owned_table_),
      config_(std::move(config)),
      key_(std::move(key)),
      clock_(clock),
      log_(std::move(log)),
      pid_(::getpid()),
      device_(std::move(device)) {
  chained_.reserve(verbs::kMaxPeers);
}

Status VerbsTransport::open_queues() {
  Result<WakeFd> wake_fd = WakeFd::create();
  if (!wake_fd.ok()) return wake_fd.status();
  wake_fd_ = wake_fd.take();
  wake_set_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!wake_set_.valid()) return Status::from_errno("epoll_create", errno);
  channel_ = table_.create_comp_channel(device_->context());
  if (channel_ == nullptr) return call_error("creating a completion channel", errno, *device_);
  const int flags = ::fcntl(channel_->fd, F_GETFL);
  if (flags < 0 || ::fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return Status::from_errno("fcntl", errno);
  }
  RDMACOLL_RETURN_IF_ERROR(add_to_set(wake_set_, channel_->fd));
  RDMACOLL_RETURN_IF_ERROR(add_to_set(wake_set_, wake_fd_.get()));
  return reserve_completions();
}

Status VerbsTransport::start_queue_pair() {
  auto door = verbs::ConnectionListener::open(table_, *device_);
  if (!door.ok()) return door.status();
  listener_ = door.take();
  auto process = random_process_id();
  if (!process.ok()) return process.status();
  card_ = {process.value(),    static_cast<uint32_t>(pid_), host_name(),
           device_->address(), listener_->number(),         listener_->key()};
  set_info({.name = kVerbsName, .device = device_->describe(), .address = encode(card_)});
  log_.write(LogLevel::Debug, "opened " + device_->describe());
  return listener_->start(
      {[this](const std::byte* data, size_t bytes) { hear_datagram(data, bytes); },
       [this](const ibv_async_event& event) { hear_event(event); },
       [this](const Status& why) { hear_closed(why); }});
}

VerbsTransport::~VerbsTransport() {
  if (::getpid() != pid_) {  // a forked child: the device, and the thread, are the parent's
    static_cast<void>(listener_.release());
    static_cast<void>(device_.release());
    for (PeerId id = 0; id < peer_count_; ++id) static_cast<void>(peers_.take(id).release());
    return;
  }
  leave();
}

int VerbsTransport::arm() {
  table_.req_notify_cq(completions_, 0);
  return wake_set_.get();
}

void VerbsTransport::disarm() {
  ibv_cq* queue = nullptr;
  void* user = nullptr;
  while (table_.get_cq_event(channel_, &queue, &user) == 0) table_.ack_cq_events(queue, 1);
  wake_fd_.drain();
}

Status VerbsTransport::fence(PeerId id, Deadline) {
  Peer& peer = peer_at(id);
  lose(peer, PeerState::Broken,
       Status(StatusCode::PeerFailed, peer.card.who() + " was cut off from this process"));
  for (const auto& stripe : peer.stripes) stripe->give_up();  // also of one that said goodbye
  return Status();
}

}  // namespace rdmacoll
