// Transports: memory of this process for all of them, and memory of others over one of them.
// Floor: engine/connect. Thread: any.
#include <algorithm>
#include <chrono>
#include <thread>

#include "csrc/base/check.h"
#include "csrc/base/printable.h"
#include "csrc/engine/connect/transports.h"

namespace rdmacoll {
namespace {

// The first byte of a transport's field of a key: its key follows, or why it has none.
constexpr char kOpens = '+';
constexpr char kRefused = '-';
constexpr size_t kMaxRefusalBytes = 512;

// A peer that runs gives an id back within a round of its driver.
constexpr int64_t kIdWaitMs = 2'000;
constexpr std::chrono::milliseconds kIdPause(1);

}  // namespace

Result<Region> Transports::create_region(uint64_t bytes) {
  Result<SharedSegment> made = SharedSegment::create(bytes);
  if (!made.ok()) return made.status();
  return add_region(RegionMemory::all_of(std::make_shared<SharedSegment>(made.take())));
}

Result<Region> Transports::add_region(const RegionMemory& memory) {
  Result<RegionId> id = new_region();
  if (!id.ok()) return id.status();
  const Region region{id.value(), memory.base(), memory.bytes};
  std::vector<Result<std::string>> keys;
  bool reachable = false;
  for (Transport* transport : transports_) {
    keys.push_back(transport->register_region(region.id, memory));
    reachable |= keys.back().ok();
  }
  const Status first = keys.front().status();
  const std::lock_guard lock(mutex_);
  keys_.insert_or_assign(region.id, std::move(keys));
  if (reachable) return region;
  released_.push_back(region.id);
  return first;
}

Result<RegionId> Transports::new_region() {
  const Deadline deadline = Deadline::after_ms(clock_, kIdWaitMs);
  while (true) {
    size_t waiting = 0;
    {
      const std::lock_guard lock(mutex_);
      if (const auto free = free_region()) return *free;
      waiting = released_.size();
    }
    if (told_.drive == nullptr || waiting == 0 || deadline.passed(clock_)) {
      std::string why = "this process has as many groups as it can have at a time (" +
                        std::to_string(kMaxRegions) + ", fewer with a heap)";
      if (waiting > 0) {
        why +=
            ", counting " + std::to_string(waiting) +
            " that are destroyed here, but that another rank still holds, as it is stopped or has "
            "not destroyed its own";
      }
      return Status(StatusCode::Unsupported, why + "; destroy groups that are not needed");
    }
    told_.drive();
    std::this_thread::sleep_for(kIdPause);
  }
}

// The first of the released ids that everybody is done with; a new id only where there is none. The
// longer an id has rested, the less harm can an oversight about its old use do.
std::optional<RegionId> Transports::free_region() {
  const auto reusable = [&](RegionId region) {
    const std::vector<Result<std::string>>& keys = keys_.at(region);
    for (size_t i = 0; i < transports_.size(); ++i) {
      if (keys[i].ok() && !transports_[i]->is_reusable(region)) return false;
    }
    return true;
  };
  const auto found = std::find_if(released_.begin(), released_.end(), reusable);
  if (found != released_.end()) {
    const RegionId region = *found;
    released_.erase(found);
    return region;
  }
  return next_region_ < kMaxRegions ? std::optional(next_region_++) : std::nullopt;
}

Result<std::string> Transports::key_for(const Transport* transport, RegionId region) const {
  const auto at = std::find(transports_.begin(), transports_.end(), transport);
  const std::lock_guard lock(mutex_);
  const auto keys = keys_.find(region);
  RDMACOLL_CHECK(at != transports_.end() && keys != keys_.end());
  return keys->second[static_cast<size_t>(at - transports_.begin())];
}

std::string Transports::region_key(RegionId region) const {
  TaggedFields fields;
  for (const Transport* transport : transports_) {
    Result<std::string> key = key_for(transport, region);
    fields[transport->info().name] =
        key.ok() ? kOpens + key.take()
                 : kRefused + key.status().message().substr(0, kMaxRefusalBytes);
  }
  return encode(fields);
}

void Transports::cut_off_region(RegionId region) {
  for (Transport* transport : transports_) {
    if (key_for(transport, region).ok()) transport->cut_off_region(region);
  }
}

void Transports::release_region(RegionId region, Release how) {
  for (Transport* transport : transports_) {
    if (key_for(transport, region).ok()) transport->release_region(region, how);
  }
  const std::lock_guard lock(mutex_);
  released_.push_back(region);
}

Status Transports::offer_region(const Path& path, RegionId region, uint64_t note) {
  RDMACOLL_RETURN_IF_ERROR(key_for(path.transport, region).status());
  return path.transport->offer_region(path.peer, region, note);
}

Result<std::string> Transports::key_over(const Path& path, const std::string& bytes) const {
  Result<TaggedFields> key = parse_tagged_fields(bytes);
  if (!key.ok()) return key.status();
  const std::string name = path.transport->info().name;
  const std::string& field = key.value()[name];
  if (field.empty() || (field[0] != kOpens && field[0] != kRefused)) {
    return Status(StatusCode::InvalidArgument, "its memory has no key for " + name);
  }
  if (field[0] == kOpens) return field.substr(1);
  return Status(StatusCode::Unsupported,
                "its memory cannot be reached by " + name + ": " + printable(field.substr(1)));
}

Result<Region> Transports::open_region(const Path& path, const std::string& bytes,
                                       Deadline deadline) {
  Result<std::string> key = key_over(path, bytes);
  if (!key.ok()) return key.status();
  return path.transport->open_region(path.peer, key.value(), deadline);
}

}  // namespace rdmacoll
