// Transports: opening them, and the choice among them. Floor: engine/connect. Thread: any.
#include "csrc/engine/connect/transports.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "csrc/base/check.h"
#include "csrc/base/host_name.h"
#include "csrc/base/memory_limits.h"
#include "csrc/base/printable.h"
#include "csrc/engine/channel/heap_size.h"
#include "csrc/transport/shm/host_id.h"

namespace rdmacoll {
namespace {

// TaggedFields of an address beside the transports' own.
constexpr const char* kHostId = "host id";
constexpr const char* kHostName = "host name";
constexpr const char* kIsland = "island";
constexpr const char* kHeap = "heap";
constexpr const char* kLargestHeap = "largest heap";  // of another that it maps; missing: any
constexpr size_t kMaxHostNameBytes = 256;             // of another host, in errors

// How long one is not answered in a transport before one looks whether the peer calls over a later
// one, and how long one sleeps between two looks at those that are not met yet: the longer, the
// longer nothing has come of it.
constexpr int64_t kLookForCallsMs = 150;
constexpr std::chrono::microseconds kSleepLeast{50};
constexpr std::chrono::microseconds kSleepMost{2000};

void add_reason(std::string* reasons, const std::string& transport, const std::string& why) {
  *reasons += (reasons->empty() ? "" : "; ") + transport + ": " + why;
}

}  // namespace

// --- opening -------------------------------------------------------------------------------------

Result<std::unique_ptr<Transports>> Transports::open(const Config& config, const Clock& clock,
                                                     std::shared_ptr<Heap> heap) {
  RDMACOLL_RETURN_IF_ERROR(check_transport_settings(config));
  Result<std::string> id = host_id(config);
  if (!id.ok()) return id.status();
  const std::string name = config.host_id.empty() ? host_name() : config.host_id;
  std::unique_ptr<Transports> opened(new Transports({}, Host{id.take(), name}, config, clock));
  for (const TransportRow& row : transport_table()) {
    RDMACOLL_RETURN_IF_ERROR(opened->open_row(row, config));
  }
  RDMACOLL_RETURN_IF_ERROR(opened->adopt_heap(std::move(heap)));
  opened->largest_peer_heap_ = rdmacoll::largest_peer_heap(config, MemoryLimits::of_this_process());
  return opened;
}

Transports::Transports(std::vector<Transport*> transports, Host host, const Config& config,
                       const Clock& clock)
    : host_(std::move(host)),
      setting_(config.transport),
      require_(config.require),
      clock_(clock),
      log_(config.log_level, "heap") {
  for (Transport* transport : transports) add(transport);
}

Transports::~Transports() {
  if (heap_ == nullptr) return;
  for (const Transport* transport : in_use()) heap_->forget(*transport);
}

void Transports::add(Transport* transport) {
  RDMACOLL_CHECK(transports_.size() < kMaxTransports);
  transports_.push_back(transport);
}

Status Transports::open_row(const TransportRow& row, const Config& config) {
  if (setting_ != "auto" && setting_ != row.name) {
    absent_[row.name] = "RDMACOLL_TRANSPORT=" + setting_;
    return Status();
  }
  auto opened = row.open(config, clock_);
  if (opened.ok()) {
    owned_.push_back(opened.take());
    add(owned_.back().get());
    return Status();
  }
  const Status& why = opened.status();
  if (setting_ == row.name) {
    return Status(why.code(), "RDMACOLL_TRANSPORT=" + setting_ + ": " + why.message());
  }
  if (why.code() != StatusCode::Unsupported) return why;
  absent_[row.name] = why.message();
  return Status();
}

TransportCounters Transports::counters() const {
  TransportCounters sum;
  for (const Transport* transport : transports_) {
    const TransportCounters one = transport->counters();
    sum.registrations += one.registrations;
    sum.control_messages += one.control_messages;
  }
  return sum;
}

void Transports::use(Transport* transport) {
  const std::span<Transport* const> used = in_use();
  if (std::find(used.begin(), used.end(), transport) != used.end()) return;
  used_[used.size()] = transport;
  used_count_.store(used.size() + 1, std::memory_order_release);
  register_heap_with(*transport);
}

// --- choosing ------------------------------------------------------------------------------------

std::string Transports::local_address() const {
  TaggedFields address{{kHostId, host_.id}, {kHostName, host_.name}};
  for (const Transport* transport : transports_) {
    const TransportInfo& info = transport->info();
    address[info.name] = info.address;
    if (!info.island.empty()) address.try_emplace(kIsland, info.island);
  }
  if (heap_ != nullptr) address[kHeap] = heap_field();
  if (largest_peer_heap_ != UINT64_MAX) address[kLargestHeap] = largest_heap_field();
  return encode(address);
}

std::string Transports::island_of(const std::string& address) {
  Result<TaggedFields> fields = parse_tagged_fields(address);
  return fields.ok() ? fields.value()[kIsland] : "";
}

std::vector<Status> Transports::connect_all(const std::vector<std::string>& addresses,
                                            Deadline deadline, const Met& met) {
  struct Pending {
    size_t index;
    TaggedFields address;
  };
  std::vector<Status> statuses(addresses.size());
  std::vector<Pending> pending;
  for (size_t index = 0; index < addresses.size(); ++index) {
    Result<TaggedFields> address = parse_tagged_fields(addresses[index]);
    statuses[index] = address.status();
    if (!address.ok()) continue;
    pending.push_back({index, address.take()});
    std::string& host_name = pending.back().address[kHostName];
    host_name = printable(host_name, kMaxHostNameBytes);
  }
  Deadline look_for_calls = Deadline::after_ms(clock_, kLookForCallsMs);
  for (auto sleep = kSleepLeast;; sleep = std::min(2 * sleep, kSleepMost)) {
    const bool last = deadline.passed(clock_);
    const bool for_calls = look_for_calls.passed(clock_);
    if (for_calls) look_for_calls = Deadline::after_ms(clock_, kLookForCallsMs);
    const size_t were_pending = pending.size();
    std::erase_if(pending, [&](Pending& one) {
      Result<Path> path = look(addresses[one.index], one.address, for_calls);
      if (!last && path.status().code() == StatusCode::Timeout) return false;
      statuses[one.index] = path.ok() ? met(one.index, path.value()) : path.status();
      return true;
    });
    if (pending.empty()) return statuses;
    if (pending.size() < were_pending) sleep = kSleepLeast;
    std::this_thread::sleep_for(sleep);
  }
}

Result<Path> Transports::look(const std::string& bytes, const TaggedFields& address,
                              bool for_calls) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(bytes); known != known_.end()) {
      const Path& path = known->second;
      RDMACOLL_RETURN_IF_ERROR(path.transport->peer_status(path.peer));
      return path;
    }
  }
  Result<Path> path = choose(address, for_calls);
  if (!path.ok()) return path.status();
  const std::lock_guard lock(mutex_);
  known_.emplace(bytes, path.value());
  use(path.value().transport);
  return path;
}

Result<Path> Transports::choose(const TaggedFields& address, bool for_calls) const {
  const std::string& host = field_of(address, kHostId);
  const std::string& host_name = field_of(address, kHostName);
  Path path{.same_host = host == host_.id, .host = host};
  std::string passed_over;
  for (size_t i = 0; i < transports_.size(); ++i) {
    const std::string name = transports_[i]->info().name;
    if (!path.same_host && !require_.empty() && name != require_) {
      add_reason(&passed_over, name, "RDMACOLL_REQUIRE=" + require_);
      continue;
    }
    Result<PeerId> peer = connect_over(i, address, for_calls);
    if (peer.ok()) {
      path.transport = transports_[i];
      path.peer = peer.value();
      path.heap = field_of(address, kHeap);
      path.largest_heap = field_of(address, kLargestHeap);
      path.reason = setting_ != "auto" ? "RDMACOLL_TRANSPORT=" + setting_
                    : !path.same_host  ? "on host " + host_name
                    : i == 0           ? "same host"
                                       : "same host, but " + passed_over;
      return path;
    }
    const Status& why = peer.status();
    if (why.code() != StatusCode::Unsupported) {
      return Status(why.code(), name + ": " + why.message());
    }
    add_reason(&passed_over, name, why.message());
  }
  for (const auto& [name, why] : absent_) add_reason(&passed_over, name, why);
  const bool forbidden = !path.same_host && !require_.empty();
  return Status(StatusCode::Unsupported,
                (forbidden ? "RDMACOLL_REQUIRE=" + require_ + " asks for " + require_ + " to host '"
                           : "nothing here reaches host '") +
                    host_name + "' (" + passed_over + ")");
}

Result<PeerId> Transports::connect_over(size_t index, const TaggedFields& address,
                                        bool for_calls) const {
  Transport& transport = *transports_[index];
  const auto field = address.find(transport.info().name);
  if (field == address.end()) {
    return Status(StatusCode::Unsupported, "the other process has it not open");
  }
  Result<PeerId> peer = transport.connect(field->second, Deadline{0});
  if (!for_calls || peer.status().code() != StatusCode::Timeout) return peer;
  for (size_t later = index + 1; later < transports_.size(); ++later) {
    const Transport& other = *transports_[later];
    const auto theirs = address.find(other.info().name);
    if (theirs == address.end() || !other.called_by(theirs->second)) continue;
    return Status(StatusCode::Unsupported,
                  "the other process could not use it, and calls over " + other.info().name);
  }
  return peer;
}

}  // namespace rdmacoll
