// ClientHost. Floor: ps/client. Thread: any.
#include "csrc/ps/client/client_host.h"

#include <algorithm>
#include <random>
#include <utility>

#include "csrc/ps/wire/meeting.h"

namespace rdmacoll::ps {
namespace {

constexpr int64_t kCallAgainNs = 2'000'000'000;
constexpr int64_t kCallMs = 2'000;

uint64_t new_worker_number() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random();
}

}  // namespace

Result<std::unique_ptr<ClientHost>> ClientHost::make(Remote& remote, std::string own_address,
                                                     uint32_t servers,
                                                     std::unique_ptr<Directory> directory,
                                                     int64_t timeout_ms,
                                                     const InterruptCheck& interrupt) {
  std::unique_ptr<ClientHost> host(
      new ClientHost(remote, std::move(own_address), std::move(directory)));
  auto map = host->directory_->map();
  if (!map.ok()) return map.status();
  host->client_ = std::make_unique<Client>(new_worker_number(), map.take(), *host);
  const Deadline deadline = Deadline::after_ms(host->clock_, timeout_ms);
  for (uint32_t server = 0; server < servers; ++server) {
    const auto id = static_cast<ServerId>(server);
    auto entry = host->directory_->server(id);
    if (!entry.ok()) return entry.status();
    auto connection = host->call(id, entry.value(), deadline.left_ms(host->clock_), interrupt);
    if (!connection.ok()) return connection.status();
    host->client_->add_server(id, connection.take());
  }
  return host;
}

Result<std::shared_ptr<RingConnection>> ClientHost::call(ServerId server,
                                                         const Directory::Entry& entry,
                                                         int64_t timeout_ms,
                                                         const InterruptCheck& interrupt) {
  auto connection = call_server({remote_, timeout_ms, interrupt}, {own_address_, kNoServer},
                                entry.address, "server " + std::to_string(server));
  if (!connection.ok()) return connection.status();
  const std::lock_guard lock(mutex_);
  servers_[server] = {connection.value(), entry.start};
  return connection;
}

ClientHost::~ClientHost() {
  for (const auto& [server, known] : servers_) {
    const auto& connection = known.connection;
    if (connection->failure().ok() && connection->room(0) != nullptr)
      connection->send({.kind = RecordKind::Leave});
  }
}

Status ClientHost::wait(int64_t most_ms, const InterruptCheck& interrupt) {
  std::vector<std::shared_ptr<RingConnection>> connections;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [server, known] : servers_) {
      if (known.connection->failure().ok()) connections.push_back(known.connection);
    }
  }
  const WorkPtr news = remote_.watch(
      [connections = std::move(connections)] {
        return std::ranges::any_of(connections,
                                   [](const auto& connection) { return connection->has_news(); });
      },
      "", most_ms);
  const Status waited = remote_.wait(*news, -1, interrupt);
  return waited.code() == StatusCode::Timeout ? Status() : waited;
}

// One that was not started again, and whose session has ended, has most likely ended, too. It is
// called all the same now and then: the network between may be well again.
Result<std::shared_ptr<Connection>> ClientHost::reach(ServerId server, const Limit& limit) {
  auto entry = directory_->server(server);
  if (!entry.ok()) return entry.status();
  {
    const std::lock_guard lock(mutex_);
    const auto known = servers_.find(server);
    if (known != servers_.end() && known->second.start == entry.value().start) {
      const int64_t now_ns = clock_.now_ns();
      int64_t& call_again_ns = known->second.call_again_ns;
      if (call_again_ns == 0) call_again_ns = now_ns + kCallAgainNs;
      const Status failure = known->second.connection->failure();
      if (!failure.ok() && now_ns < call_again_ns) return failure;
      call_again_ns = now_ns + kCallAgainNs;
    }
  }
  const int64_t most_ms = std::min(kCallMs, limit.deadline.left_ms(clock_));
  auto connection = call(server, entry.value(), most_ms, limit.interrupt);
  if (!connection.ok()) return connection.status();
  return std::shared_ptr<Connection>(connection.take());
}

}  // namespace rdmacoll::ps
