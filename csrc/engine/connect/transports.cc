// Transports: opening them, and the choice among them. Floor: engine/connect. Thread: any.
#include "csrc/engine/connect/transports.h"

#include <algorithm>

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
constexpr const char* kNotOpen = "the other process has it not open";
constexpr size_t kMaxHostNameBytes = 256;  // of another host, in errors

void add_reason(std::string* reasons, const std::string& transport, const std::string& why) {
  *reasons += (reasons->empty() ? "" : "; ") + transport + ": " + why;
}

}  // namespace

// --- opening -------------------------------------------------------------------------------------

Result<std::unique_ptr<Transports>> Transports::open(const Config& config, const Clock& clock,
                                                     std::shared_ptr<Heap> heap,
                                                     const ThisProcess& process) {
  RDMACOLL_RETURN_IF_ERROR(check_transport_settings(config));
  Result<std::string> id = host_id(config);
  if (!id.ok()) return id.status();
  const std::string name = config.host_id.empty() ? host_name() : config.host_id;
  std::unique_ptr<Transports> opened(new Transports({}, Host{id.take(), name}, config, clock));
  for (const TransportRow& row : transport_table()) {
    RDMACOLL_RETURN_IF_ERROR(opened->open_row(row, config, process));
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

Status Transports::open_row(const TransportRow& row, const Config& config,
                            const ThisProcess& process) {
  if (setting_ != "auto" && setting_ != row.name) {
    absent_[row.name] = "RDMACOLL_TRANSPORT=" + setting_;
    return Status();
  }
  auto opened = row.open(config, clock_, process);
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
  {
    const std::lock_guard lock(mutex_);
    const std::span<Transport* const> used = in_use();
    if (std::find(used.begin(), used.end(), transport) != used.end()) return;
    used_[used.size()] = transport;
    used_count_.store(used.size() + 1, std::memory_order_release);
    register_heap_with(*transport);
  }
  if (told_.used) told_.used();
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

bool Transports::is_here(const std::string& address) const {
  Result<TaggedFields> fields = parse_tagged_fields(address);
  return fields.ok() && field_of(fields.value(), kHostId) == host_.id;
}

Result<Path> Transports::look(const std::string& bytes, bool for_calls, const Transport* over) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(bytes); known != known_.end()) {
      const Path& path = known->second;
      RDMACOLL_RETURN_IF_ERROR(path.transport->peer_status(path.peer));
      return path;
    }
  }
  Result<TaggedFields> address = parse_tagged_fields(bytes);
  if (!address.ok()) return address.status();
  std::string& host_name = address.value()[kHostName];
  host_name = printable(host_name, kMaxHostNameBytes);
  Result<Path> path = choose(address.value(), for_calls, over);
  if (!path.ok()) return path.status();
  use(path.value().transport);
  const std::lock_guard lock(mutex_);
  known_.emplace(bytes, path.value());
  return path;
}

void Transports::serve(Report& report) {
  SetUpReport come;
  for (Transport* transport : transports_) {
    transport->serve(come);
    for (RegionOffer& offer : come.offers) report.offers.push_back({std::move(offer), transport});
    for (std::string& address : come.callers) {
      report.callers.push_back({transport, std::move(address)});
    }
    come.offers.clear();
    come.callers.clear();
  }
}

Status Transports::meet(const Caller& caller) {
  const Status met = caller.transport->connect(caller.address, Deadline{0}).status();
  if (met.ok()) use(caller.transport);
  return met;
}

std::vector<int> Transports::set_up_fds() const {
  std::vector<int> fds;
  for (const Transport* transport : transports_) {
    if (transport->info().set_up_fd >= 0) fds.push_back(transport->info().set_up_fd);
  }
  return fds;
}

Result<Path> Transports::choose(const TaggedFields& address, bool for_calls,
                                const Transport* over) const {
  const std::string& host = field_of(address, kHostId);
  const std::string& host_name = field_of(address, kHostName);
  Path path{.same_host = host == host_.id, .host = host};
  std::string passed_over;
  for (size_t i = 0; i < transports_.size(); ++i) {
    const std::string name = transports_[i]->info().name;
    if (over != nullptr && transports_[i] != over) continue;
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
  return unreachable(address, passed_over);
}

Status Transports::unreachable(const TaggedFields& address, std::string passed_over) const {
  for (const auto& [name, why] : absent_) add_reason(&passed_over, name, why);
  const bool forbidden = field_of(address, kHostId) != host_.id && !require_.empty();
  return Status(StatusCode::Unsupported,
                (forbidden ? "RDMACOLL_REQUIRE=" + require_ + " asks for " + require_ + " to host '"
                           : "nothing here reaches host '") +
                    field_of(address, kHostName) + "' (" + passed_over + ")");
}

Status Transports::check_required(const std::string& bytes) const {
  Result<TaggedFields> address = parse_tagged_fields(bytes);
  if (!address.ok()) return address.status();
  if (require_.empty() || field_of(address.value(), kHostId) == host_.id) return Status();
  std::string& host_name = address.value()[kHostName];
  host_name = printable(host_name, kMaxHostNameBytes);
  std::string passed_over;
  for (const Transport* transport : transports_) {
    const std::string name = transport->info().name;
    const bool is_required = name == require_;
    if (is_required && address.value().contains(name)) return Status();
    add_reason(&passed_over, name, is_required ? kNotOpen : "RDMACOLL_REQUIRE=" + require_);
  }
  return unreachable(address.value(), passed_over);
}

Result<PeerId> Transports::connect_over(size_t index, const TaggedFields& address,
                                        bool for_calls) const {
  Transport& transport = *transports_[index];
  const auto field = address.find(transport.info().name);
  if (field == address.end()) {
    return Status(StatusCode::Unsupported, kNotOpen);
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
