// Heap. Floor: engine/channel. Thread: any.
#include "csrc/engine/channel/heap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "csrc/base/check.h"
#include "csrc/engine/channel/heap_size.h"

namespace rdmacoll {
namespace {

// Few registrations, and not much pinned for a few small tensors.
constexpr uint64_t kExtentBytesMin = 32ull << 20;

}  // namespace

Result<std::shared_ptr<Heap>> Heap::create(const Config& config) {
  Result<HeapSize> size = choose_heap_size(config, MemoryLimits::of_this_process());
  if (!size.ok()) return size.status();
  const auto& [bytes, warning] = size.value();
  if (!warning.empty()) Log(config.log_level, "heap").write(LogLevel::Warn, warning);
  if (bytes == 0) return std::shared_ptr<Heap>();
  Result<SharedSegment> made = SharedSegment::create(bytes);
  if (!made.ok()) {
    return Status(made.status().code(),
                  "the heap (RDMACOLL_HEAP_BYTES; 0: none): " + made.status().message());
  }
  return std::shared_ptr<Heap>(new Heap(std::make_shared<SharedSegment>(made.take()), config));
}

Heap::Heap(std::shared_ptr<SharedSegment> memory, const Config& config)
    : memory_(std::move(memory)),
      base_(memory_->data()),
      capacity_(memory_->bytes()),
      zero_copy_local_bytes_(static_cast<uint64_t>(config.zero_copy_local_bytes)),
      log_(config.log_level, "heap"),
      pid_(::getpid()),
      space_(capacity_) {
  stats_.capacity_bytes = space_.capacity();
  // A core file with all of its holes would be as large as the heap may get.
  ::madvise(base_, capacity_, MADV_DONTDUMP);
}

std::byte* Heap::allocate(uint64_t bytes) {
  if (::getpid() != pid_) return nullptr;
  const std::lock_guard lock(mutex_);
  auto offset = space_.take(bytes);
  if (!offset && extend(bytes)) offset = space_.take(bytes);
  if (!offset) {
    if (stats_.refused++ == 0) {
      log_.write(LogLevel::Warn,
                 "the heap of " + std::to_string(capacity_) + " bytes has no room for " +
                     std::to_string(bytes) +
                     " more: what does not fit is ordinary memory, and copied on its way. "
                     "rdmarun --heap-size or RDMACOLL_HEAP_BYTES makes it larger");
    }
    return nullptr;
  }
  ++stats_.allocations;
  stats_.peak_bytes = std::max(stats_.peak_bytes, space_.taken());
  return base_ + *offset;
}

uint64_t Heap::free(std::byte* data) {
  if (::getpid() != pid_) return 0;
  const std::lock_guard lock(mutex_);
  const uint64_t bytes = space_.give(static_cast<uint64_t>(data - base_));
  RDMACOLL_CHECK(bytes != 0);
  return bytes;
}

HeapStats Heap::stats() const {
  const std::lock_guard lock(mutex_);
  HeapStats stats = stats_;
  stats.allocated_bytes = space_.taken();
  stats.extent_bytes = space_.extended();
  return stats;
}

bool Heap::extend(uint64_t bytes) {
  const uint32_t index = extent_count_.load(std::memory_order_relaxed);
  if (index == kMaxExtents) return false;
  const auto made = space_.extend(bytes, kExtentBytesMin);
  if (!made) return false;
  extents_[index].end = made->offset + made->bytes;
  extents_[index].registered.store(true, std::memory_order_relaxed);
  for (Transport* transport : transports_) register_extent(index, *transport);
  extent_count_.store(index + 1, std::memory_order_release);
  return true;
}

void Heap::register_with(Transport& transport) {
  const std::lock_guard lock(mutex_);
  transports_.push_back(&transport);
  const uint32_t count = extent_count_.load(std::memory_order_relaxed);
  for (uint32_t index = 0; index < count; ++index) register_extent(index, transport);
}

void Heap::forget(const Transport& transport) {
  const std::lock_guard lock(mutex_);
  std::erase(transports_, &transport);
  for (Extent& extent : extents_) {
    for (Key& key : extent.keys) {
      if (key.transport.load() == &transport) key.transport.store(nullptr);
    }
  }
  if (!transports_.empty()) return;
  for (Extent& extent : extents_) extent.registered.store(true, std::memory_order_release);
}

void Heap::register_extent(uint32_t index, Transport& transport) {
  const uint64_t begin = index == 0 ? 0 : extents_[index - 1].end;
  Extent& extent = extents_[index];
  Result<std::string> registered = transport.register_region(
      kFirstExtent + index, {memory_, begin, extent.end - begin, Access::PutOnly});
  if (registered.ok()) {
    const auto free = std::find_if(extent.keys.begin(), extent.keys.end(),
                                   [](const Key& key) { return key.transport.load() == nullptr; });
    RDMACOLL_CHECK(free != extent.keys.end());
    free->bytes = registered.take();
    free->transport.store(&transport, std::memory_order_release);
    return;
  }
  extent.registered.store(false, std::memory_order_release);
  if (warned_of_registration_) return;
  warned_of_registration_ = true;
  log_.write(LogLevel::Warn,
             transport.info().name +
                 " cannot reach the heap, so what lies there is copied on its way: " +
                 registered.status().message());
}

std::optional<Heap::Part> Heap::part_of(const std::byte* data, uint64_t bytes) const {
  if (!holds(data, bytes)) return std::nullopt;
  const auto begin = static_cast<uint64_t>(data - base_);
  const uint32_t count = extent_count_.load(std::memory_order_acquire);
  for (uint32_t index = 0; index < count; ++index) {
    const Extent& extent = extents_[index];
    if (begin + bytes > extent.end) continue;
    const uint64_t start = index == 0 ? 0 : extents_[index - 1].end;
    if (begin < start || !extent.registered.load(std::memory_order_acquire)) break;
    return Part{kFirstExtent + index, begin - start};
  }
  return std::nullopt;
}

std::string_view Heap::key_of(RegionId part, const Transport& transport) const {
  for (const Key& key : extents_[part - kFirstExtent].keys) {
    if (key.transport.load(std::memory_order_acquire) == &transport) return key.bytes;
  }
  return {};
}

}  // namespace rdmacoll
