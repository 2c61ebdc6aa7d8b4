// VerbsTransport: opening and leaving, sleep, and what a peer's state is.
// Floor: transport/verbs. Thread: transport.h.
#include "csrc/transport/verbs/transport.h"

#include <unistd.h>

#include <utility>

#include "csrc/base/check.h"
#include "csrc/base/host_name.h"
#include "csrc/transport/verbs/device/errors.h"
#include "csrc/transport/verbs/open_verbs.h"

namespace rdmacoll {
Result<std::unique_ptr<VerbsTransport>> VerbsTransport::open(const VerbsTable& table,
                                                             const Config& config,
                                                             const Clock& clock,
                                                             const ThisProcess& process) {
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
  RDMACOLL_RETURN_IF_ERROR(transport->completions_.open());
  RDMACOLL_RETURN_IF_ERROR(transport->completions_.reserve(1, transport->config_.queue_pairs));
  RDMACOLL_RETURN_IF_ERROR(transport->start_queue_pair(process));
  return transport;
}

VerbsTransport::VerbsTransport(std::unique_ptr<const VerbsTable> table, VerbsConfig config, Log log,
                               JobKey key, const Clock& clock, std::unique_ptr<Device> device)
    : table_(std::move(table)),
      config_(std::move(config)),
      key_(std::move(key)),
      clock_(clock),
      log_(std::move(log)),
      pid_(::getpid()),
      device_(std::move(device)),
      completions_(*table_, *device_) {
  chained_.reserve(kMaxPeers);
}

Status VerbsTransport::start_queue_pair(const ThisProcess& process) {
  auto listener = verbs::ConnectionListener::open(table(), *device_);
  if (!listener.ok()) return listener.status();
  listener_ = listener.take();
  own_address_ = {process.id,         static_cast<uint32_t>(pid_), host_name(),
                  device_->address(), listener_->number(),         listener_->key()};
  news_.ring_by(process.alarm);
  set_info({.name = kVerbsName,
            .device = device_->describe(),
            .address = encode(own_address_),
            .set_up_fd = news_.get()});
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
    for (PeerId id = 0; id < met_.count(); ++id) static_cast<void>(peers_.take(id).release());
    return;
  }
  leave();
}

Status VerbsTransport::fence(PeerId id, Deadline) {
  Peer& peer = peer_at(id);
  lose(peer, PeerState::Broken,
       Status(StatusCode::PeerFailed, peer.address.who() + " was cut off from this process"));
  for (const auto& stripe : peer.stripes) stripe->give_up();  // also of one that said goodbye
  return Status();
}

}  // namespace rdmacoll
