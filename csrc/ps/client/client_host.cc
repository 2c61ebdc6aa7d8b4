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
// Less is copied twice sooner than a server looks for it elsewhere.
constexpr uint64_t kStagedBytes = 64 * 1024;

uint64_t new_worker_number() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random();
}

}  // namespace

class ClientHost::Read final : public ShardRead {
 public:
  Read(WorkPtr work, std::shared_ptr<const uint64_t> version)
      : work_(std::move(work)), version_(std::move(version)) {}
  std::optional<bool> outcome() const override {
    if (!work_->done()) return std::nullopt;
    return work_->status().ok() && *version_ > 0;
  }
  Work& work() const { return *work_; }

 private:
  const WorkPtr work_;
  const std::shared_ptr<const uint64_t> version_;
};

Result<std::unique_ptr<ClientHost>> ClientHost::make(Remote& remote, std::string own_address,
                                                     std::unique_ptr<Directory> directory,
                                                     int64_t timeout_ms,
                                                     const InterruptCheck& interrupt) {
  std::unique_ptr<ClientHost> host(
      new ClientHost(remote, new_worker_number(), std::move(own_address), std::move(directory)));
  auto map = host->directory_->map();
  if (!map.ok()) return map.status();
  const bool keeps_backups = map.value().of(0).backup != kNoServer;
  const std::vector<ServerId> servers = map.value().servers();
  host->client_ = std::make_unique<Client>(host->number_, map.take(), *host);
  const Deadline deadline = Deadline::after_ms(host->clock_, timeout_ms);
  for (const ServerId server : servers) {
    auto entry = host->directory_->server(server);
    if (!entry.ok()) return entry.status();
    auto connection = host->call(server, entry.value(), deadline.left_ms(host->clock_), interrupt);
    if (!connection.ok()) return connection.status();
    host->client_->add_server(server, connection.take());
  }
  if (keeps_backups) RDMACOLL_RETURN_IF_ERROR(host->lend_stage({deadline, interrupt}));
  return host;
}

Result<std::shared_ptr<RingConnection>> ClientHost::call(ServerId server,
                                                         const Directory::Entry& entry,
                                                         int64_t timeout_ms,
                                                         const InterruptCheck& interrupt) {
  auto connection = call_server({remote_, timeout_ms, interrupt}, {own_address_, kNoServer},
                                entry.address, "server " + std::to_string(server));
  if (!connection.ok()) return connection.status();
  if (connection.value()->is_near()) {
    loans_.lend_all(server, entry.address, {remote_, timeout_ms, interrupt});
  }
  const std::lock_guard lock(mutex_);
  Known& known = servers_[server];
  close(known);
  known = {.connection = connection.value(), .address = entry.address, .start = entry.start};
  return connection;
}

std::optional<std::shared_ptr<float>> ClientHost::stage(ServerId primary, ServerId backup,
                                                        uint64_t bytes) {
  return bytes < kStagedBytes ? std::nullopt : loans_.stage(primary, backup);
}

// Those of this host that run, with their addresses.
std::map<ServerId, std::string> ClientHost::near_servers() const {
  std::map<ServerId, std::string> near;
  const std::lock_guard lock(mutex_);
  for (const auto& [server, known] : servers_) {
    const bool is_reached = known.connection->failure().ok();
    if (is_reached && known.connection->is_near()) near.emplace(server, known.address);
  }
  return near;
}

void ClientHost::lend(const Loan& loan, const Limit& limit) {
  for (const auto& [server, address] : near_servers()) {
    const int64_t most_ms = std::min(kCallMs, limit.deadline.left_ms(clock_));
    loans_.lend(loan, server, address, {remote_, most_ms, limit.interrupt});
  }
}

Result<LoanPtr> ClientHost::lend(uint64_t bytes, const Limit& limit) {
  auto loan = loans_.make(bytes);
  if (loan.ok()) lend(*loan.value(), limit);
  return loan;
}

// A copy serves a primary and a backup that are both of this host.
Status ClientHost::lend_stage(const Limit& limit) {
  if (near_servers().size() < 2) return Status();
  auto loan = loans_.make_stage();
  if (loan.ok()) lend(*loan.value(), limit);
  return loan.status();
}

void ClientHost::close(Known& known) {
  for (const auto& [number, extent] : std::exchange(known.extents, {})) {
    if (extent != nullptr) remote_.close(extent);
  }
}

std::vector<std::shared_ptr<const ClientHost::Read>> ClientHost::held_reads() const {
  std::vector<std::shared_ptr<const Read>> held;
  for (const auto& read : reads_) {
    if (auto one = read.lock()) held.push_back(std::move(one));
  }
  return held;
}

// What is still read is written to memory of its callers, who may free it after this.
ClientHost::~ClientHost() {
  for (const auto& read : held_reads()) {
    static_cast<void>(remote_.wait(read->work(), 2 * kLongestReadMs, {}));
  }
  for (auto& [server, known] : servers_) {
    close(known);
    const auto& connection = known.connection;
    if (connection->failure().ok() && connection->room(0) != nullptr)
      connection->send({.kind = RecordKind::Leave});
  }
}

Status ClientHost::wait(int64_t most_ms, const InterruptCheck& interrupt) {
  std::vector<std::shared_ptr<RingConnection>> connections;
  std::vector<std::shared_ptr<const Read>> reads;
  {
    const std::lock_guard lock(mutex_);
    reads = held_reads();
    for (const auto& [server, known] : servers_) {
      if (known.connection->failure().ok()) connections.push_back(known.connection);
    }
  }
  const WorkPtr news = remote_.watch(
      [connections = std::move(connections), reads = std::move(reads)] {
        return std::ranges::any_of(connections,
                                   [](const auto& connection) { return connection->has_news(); }) ||
               std::ranges::any_of(reads,
                                   [](const auto& read) { return read->outcome().has_value(); });
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

// --- reads ---------------------------------------------------------------------------------------

bool ClientHost::can_read(ServerId server) const {
  const std::lock_guard lock(mutex_);
  return servers_.at(server).connection->is_read_alone();
}

// Opened when it is first read.
OpenedPtr ClientHost::extent_of(ServerId server, uint32_t extent, const Limit& limit) {
  std::string address;
  {
    const std::lock_guard lock(mutex_);
    const Known& known = servers_.at(server);
    const auto open = known.extents.find(extent);
    if (open != known.extents.end()) return open->second;
    address = known.address;
  }
  const std::string who = "server " + std::to_string(server);
  auto opened = remote_.open(address, who, extent_name(server, extent),
                             std::min(kCallMs, limit.deadline.left_ms(clock_)), limit.interrupt);
  if (!opened.ok()) return nullptr;
  const std::lock_guard lock(mutex_);
  return servers_.at(server).extents[extent] = opened.take();
}

std::shared_ptr<const ShardRead> ClientHost::read(const ShardRange& range, const Limit& limit) {
  const OpenedPtr extent = extent_of(range.server, range.place.extent, limit);
  if (extent == nullptr || !extent->failure().ok()) return nullptr;
  const auto version = std::make_shared<uint64_t>(0);
  auto read = std::make_shared<const Read>(
      remote_.snapshot(extent, {range.place.offset, range.version_bytes},
                       {range.into.data(),
                        range.into.size(),
                        {{range.first_byte, 0, range.into.size()}},
                        range.stores},
                       version, kLongestReadMs),
      version);
  const std::lock_guard lock(mutex_);
  std::erase_if(reads_, [](const auto& one) { return one.expired(); });
  reads_.push_back(read);
  return read;
}

Mapped ClientHost::mapped(ServerId server, uint32_t extent, const Limit& limit) {
  const OpenedPtr opened = extent_of(server, extent, limit);
  if (opened == nullptr) return {};
  auto use = opened->use();
  if (use == nullptr || use->memory->region.base == nullptr) return {};
  const std::byte* const data = use->memory->region.base + opened->as.offset;
  return {{data, opened->info.bytes}, std::move(use)};
}

}  // namespace rdmacoll::ps
