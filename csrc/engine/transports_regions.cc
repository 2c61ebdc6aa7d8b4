// Transports: memory of this process for all of them, and memory of others over one of them.
// Floor: engine. Thread: any.
#include <algorithm>

#include "csrc/base/check.h"
#include "csrc/base/printable.h"
#include "csrc/engine/transports.h"

namespace rdmacoll {
namespace {

// The first byte of a transport's section of a key: its key follows, or why it has none.
constexpr char kOpens = '+';
constexpr char kRefused = '-';
constexpr size_t kMaxRefusalBytes = 512;

}  // namespace

Result<Region> Transports::create_region(uint64_t bytes) {
  Result<SharedSegment> made = SharedSegment::create(bytes);
  if (!made.ok()) return made.status();
  const auto memory = std::make_shared<SharedSegment>(made.take());
  Result<RegionId> id = new_regions(1);
  if (!id.ok()) return id.status();
  const Region region{id.value(), memory->data(), bytes};
  std::vector<Status> outcomes;
  bool reachable = false;
  for (Transport* transport : transports_) {
    outcomes.push_back(transport->register_region(region.id, memory));
    reachable |= outcomes.back().ok();
  }
  if (!reachable) return outcomes.front();
  const std::lock_guard lock(mutex_);
  registered_.emplace(region.id, std::move(outcomes));
  return region;
}

Result<RegionId> Transports::new_regions(uint32_t count) {
  const std::lock_guard lock(mutex_);
  if (count > kMaxRegions - next_region_) {
    return Status(StatusCode::Unsupported, "a process can make about " +
                                               std::to_string(kMaxRegions) +
                                               " groups in its life, and this one has");
  }
  next_region_ += count;
  return next_region_ - count;
}

Status Transports::registered(const Transport* transport, RegionId region) const {
  const auto at = std::find(transports_.begin(), transports_.end(), transport);
  const std::lock_guard lock(mutex_);
  const auto outcomes = registered_.find(region);
  RDMACOLL_CHECK(at != transports_.end() && outcomes != registered_.end());
  return outcomes->second[static_cast<size_t>(at - transports_.begin())];
}

std::string Transports::region_key(RegionId region) const {
  Sections key;
  for (const Transport* transport : transports_) {
    const Status outcome = registered(transport, region);
    key[transport->name()] = outcome.ok()
                                 ? kOpens + transport->region_key(region)
                                 : kRefused + outcome.message().substr(0, kMaxRefusalBytes);
  }
  return encode(key);
}

void Transports::release_region(RegionId region) {
  for (Transport* transport : transports_) {
    if (registered(transport, region).ok()) transport->release_region(region);
  }
  const std::lock_guard lock(mutex_);
  registered_.erase(region);
}

Status Transports::offer_region(const Path& path, RegionId region) {
  RDMACOLL_RETURN_IF_ERROR(registered(path.transport, region));
  return path.transport->offer_region(path.peer, region);
}

Status Transports::open_region(const Path& path, const std::string& bytes, Deadline deadline) {
  Result<Sections> key = parse_sections(bytes);
  if (!key.ok()) return key.status();
  const std::string name = path.transport->name();
  const std::string& section = key.value()[name];
  if (section.empty() || (section[0] != kOpens && section[0] != kRefused)) {
    return Status(StatusCode::InvalidArgument, "its memory has no key for " + name);
  }
  const std::string rest = section.substr(1);
  if (section[0] == kRefused) {
    return Status(StatusCode::Unsupported,
                  "its memory cannot be reached by " + name + ": " + printable(rest));
  }
  return path.transport->open_region(path.peer, rest, deadline);
}

}  // namespace rdmacoll
