// RemoteMemory. Floor: remote. Thread: any.
#include "csrc/remote/remote_memory.h"

#include "csrc/remote/fields.h"

namespace rdmacoll {
namespace {

// Nobody waits for what is told with this.
constexpr int64_t kForgetNs = 10'000'000'000;

}  // namespace

void RemoteMemories::add(RemoteMemory& memory) {
  const std::lock_guard lock(mutex_);
  all_.insert(&memory);
}

void RemoteMemories::remove(RemoteMemory& memory) {
  const std::lock_guard lock(mutex_);
  all_.erase(&memory);
}

// Under the mutex.
RemoteMemory* RemoteMemories::at(const void* data, uint64_t bytes) const {
  for (RemoteMemory* memory : all_) {
    // The offset wraps for what lies before it.
    if (memory->holds(memory->offset_of(data), bytes)) return memory;
  }
  return nullptr;
}

// One that is about to end is none any more.
RemoteMemoryPtr RemoteMemories::find(const void* data, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  RemoteMemory* memory = at(data, bytes);
  return memory == nullptr ? nullptr : memory->weak_from_this().lock();
}

RemoteMemories::Local RemoteMemories::local(const void* data, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  const RemoteMemory* memory = at(data, bytes);
  return memory == nullptr ? Local{} : memory->local();
}

uint64_t RemoteMemories::bytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const RemoteMemory* memory : all_) bytes += memory->bytes();
  return bytes;
}

void RemoteMemories::forget(const SessionPtr& session) const {
  const std::lock_guard lock(mutex_);
  for (RemoteMemory* memory : all_) memory->forget(session);
}

Result<RemoteMemoryPtr> RemoteMemory::make(const RemoteMemoryContext& context, uint64_t bytes,
                                           Others others) {
  auto made = SharedSegment::create(bytes, others);
  if (!made.ok()) return made.status();
  auto segment = std::make_shared<SharedSegment>(made.take());
  const Access access = others == Others::Write ? Access::Full : Access::ReadOnly;
  auto region = context.transports.add_region(RegionMemory::all_of(segment, access));
  if (!region.ok()) return region.status();
  return RemoteMemoryPtr(new RemoteMemory(context, std::move(segment), region.value()));
}

RemoteMemory::RemoteMemory(RemoteMemoryContext context, std::shared_ptr<SharedSegment> segment,
                           Region region)
    : context_(std::move(context)),
      data_(region.base),
      bytes_(region.bytes),
      others_(segment->others()),
      region_(region.id),
      segment_(std::move(segment)) {
  context_.all->add(*this);
}

RemoteMemory::~RemoteMemory() {
  context_.all->remove(*this);
  const RegionId region = region_.load();
  if (region != kNoRegion) context_.transports.release_region(region, Release::Withdraw);
  tell_to_forget(offered_);
}

void RemoteMemory::tell_to_forget(const Offered& offered) const {
  for (const auto& [known, key] : offered) {
    const SessionPtr session = known.lock();
    if (session == nullptr) continue;
    auto forget = std::make_shared<Request>();
    forget->work = std::make_shared<Work>();
    forget->text = encode(TaggedFields{{fields::kDo, fields::kForget}, {fields::kKey, key}});
    forget->deadline_ns = context_.sessions.now_ns() + kForgetNs;
    // Where it cannot be told the other has ended.
    static_cast<void>(context_.sessions.submit(*session, std::move(forget)));
  }
}

// In this order: cut_off() takes the region away before it looks at the count.
RemoteMemories::Local RemoteMemory::local() const {
  RemoteMemories::Local made{.in_use = in_use_};
  made.region = region_.load();
  return made;
}

Result<std::string> RemoteMemory::offer(const SessionPtr& session) {
  const std::lock_guard lock(mutex_);
  const std::weak_ptr<Session> to = session->weak_from_this();
  if (const auto known = offered_.find(to); known != offered_.end()) return known->second;
  const RegionId region = region_.load();
  if (region == kNoRegion) return std::string();
  Path path;
  path.transport = session->link().transport;
  path.peer = session->link().peer;
  Transports& transports = context_.transports;
  auto key = transports.key_over(path, transports.region_key(region));
  if (!key.ok()) return key.status();
  RDMACOLL_RETURN_IF_ERROR(transports.offer_region(path, region, kNoNote));
  offered_.emplace(to, key.value());
  return key;
}

void RemoteMemory::forget(const SessionPtr& session) {
  const std::lock_guard lock(mutex_);
  offered_.erase(session->weak_from_this());
}

Status RemoteMemory::cut_off(const InDriver& in_driver) {
  auto made = SharedSegment::create(bytes_, others_);
  if (!made.ok()) return made.status();
  const auto fresh = std::make_shared<SharedSegment>(made.take());
  const RegionId region = region_.load();
  Status changed;
  RDMACOLL_RETURN_IF_ERROR(in_driver([&] {
    // No transfer of this process may use the region any more.
    region_.store(kNoRegion);
    if (in_use_.use_count() > 1) {
      region_.store(region);
      return false;
    }
    changed = fresh->take_place_of(*segment_);
    if (changed.ok()) context_.transports.cut_off_region(region);
    return true;
  }));
  if (!changed.ok()) {
    region_.store(region);
    return changed;
  }
  context_.transports.release_region(region, Release::Withdraw);
  const std::lock_guard lock(mutex_);
  tell_to_forget(std::exchange(offered_, {}));
  segment_ = fresh;
  auto anew = context_.transports.add_region(RegionMemory::all_of(segment_));
  if (anew.ok()) region_.store(anew.value().id);
  return anew.status();
}

}  // namespace rdmacoll
