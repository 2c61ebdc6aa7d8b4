// ShmTransport: opening it. Floor: transport/shm.
#include "csrc/transport/shm/transport.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "csrc/transport/shm/host_id.h"

namespace rdmacoll {
namespace {

Result<ShmAddress> make_address(const Config& config, const ProcessId& process) {
  Result<std::string> host = host_id(config);
  if (!host.ok()) return host.status();
  ShmAddress address;
  address.host = host.take();
  address.process = process;
  address.pid = static_cast<uint32_t>(::getpid());
  address.network_namespace = network_namespace();
  return address;
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

Result<std::unique_ptr<ShmTransport>> ShmTransport::open(const Config& config, const Clock& clock,
                                                         const ThisProcess& process) {
  Result<JobKey> key = JobKey::load(config.secret.text);
  if (!key.ok()) return key.status();
  Result<ShmAddress> address = make_address(config, process.id);
  if (!address.ok()) return address.status();
  Result<SharedSegment> control = SharedSegment::create(sizeof(Control));
  if (!control.ok()) return control.status();
  Result<WakeFd> wake_fd = WakeFd::create();
  if (!wake_fd.ok()) return wake_fd.status();
  Result<SoleFd> listener = PeerSocket::listen(socket_name(process.id));
  if (!listener.ok()) return listener.status();

  std::unique_ptr<ShmTransport> transport(new ShmTransport(
      clock, key.take(), address.take(), control.take(), wake_fd.take(), listener.take()));
  transport->news_.ring_by(process.alarm);
  RDMACOLL_RETURN_IF_ERROR(transport->watch_own_descriptors());
  return transport;
}

ShmTransport::ShmTransport(const Clock& clock, JobKey key, ShmAddress own_address,
                           SharedSegment control, WakeFd wake_fd, SoleFd listener)
    : clock_(clock),
      key_(std::move(key)),
      own_address_(std::move(own_address)),
      pid_(::getpid()),
      listener_(std::move(listener)),
      setup_set_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_set_(::epoll_create1(EPOLL_CLOEXEC)) {
  add_self(std::move(control), std::move(wake_fd));
  set_info(
      {.name = kName,
       .address = encode(own_address_),
       .shares_memory = true,
       .set_up_fd = setup_set_.get(),
       .has_updates = true,
       .island = island_of(own_address_.host, own_address_.network_namespace, UserView::now())});
}

// A forked child leaves everything as it is: the epoll sets are the parent's, too.
ShmTransport::~ShmTransport() {
  if (::getpid() == pid_) leave();
}

Status ShmTransport::watch_own_descriptors() {
  if (!setup_set_.valid() || !wake_set_.valid()) return Status::from_errno("epoll_create", errno);
  RDMACOLL_RETURN_IF_ERROR(watch(setup_set_, news_.get(), EPOLLIN, {Watched::News}));
  RDMACOLL_RETURN_IF_ERROR(
      watch(setup_set_, listener_.get(), EPOLLIN | EPOLLET, {Watched::Listener}));
  return watch(wake_set_, self().wake_fd.get(), EPOLLIN, {Watched::Wake});
}

// This process is its own peer 0, so that a group may name all its ranks alike.
void ShmTransport::add_self(SharedSegment control, WakeFd wake_fd) {
  auto self = std::make_unique<Peer>(std::move(control), std::move(wake_fd), PeerSocket(SoleFd()));
  self->process = own_address_.process;
  self->name = "this process";
  self->same_process = true;
  ids_[own_address_.process] = 0;
  peers_.set(0, std::move(self));
}

}  // namespace rdmacoll
