// Transports: the heap of this process, and those of others. Floor: engine/connect. Thread: any.
#include <cstring>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/engine/connect/transports.h"

namespace rdmacoll {
namespace {

std::string bytes_of(uint64_t number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace

Status Transports::adopt_heap(std::shared_ptr<Heap> heap) {
  if (heap == nullptr) return Status();
  RDMACOLL_CHECK(heap_ == nullptr && next_region_ == Heap::kRegion);
  next_region_ += Heap::kRegions;
  std::vector<Result<std::string>> keys;
  for (Transport* transport : transports_) {
    const bool shares_memory = transport->info().shares_memory;
    keys.push_back(shares_memory ? transport->register_region(Heap::kRegion,
                                                              RegionMemory::all_of(heap->memory()))
                                 : Status(StatusCode::Unsupported, "it shares no memory"));
    if (shares_memory) RDMACOLL_RETURN_IF_ERROR(keys.back().status());
  }
  heap_ = std::move(heap);
  for (Transport* transport : in_use()) register_heap_with(*transport);
  const std::lock_guard lock(mutex_);
  keys_.emplace(Heap::kRegion, std::move(keys));
  return Status();
}

// One that shares memory has the heap as one region.
void Transports::register_heap_with(Transport& transport) {
  if (heap_ != nullptr && !transport.info().shares_memory) heap_->register_with(transport);
}

// Its size, 8 bytes, and the key of its region.
std::string Transports::heap_field() const {
  return bytes_of(heap_->capacity()) + region_key(Heap::kRegion);
}

std::string Transports::largest_heap_field() const { return bytes_of(largest_peer_heap_); }

Status Transports::offer_heap(const Path& path) {
  if (heap_ == nullptr || !path.transport->info().shares_memory) return Status();
  if (!heap_is_mapped_by(path)) return Status();
  const std::lock_guard lock(mutex_);
  if (!offered_heap_.emplace(path.transport, path.peer).second) return Status();
  return path.transport->offer_region(path.peer, Heap::kRegion, kNoNote);
}

bool Transports::heap_is_mapped_by(const Path& path) const {
  uint64_t largest = UINT64_MAX;
  if (path.largest_heap.size() == sizeof(largest)) {
    std::memcpy(&largest, path.largest_heap.data(), sizeof(largest));
  }
  return heap_ == nullptr || heap_->capacity() <= largest;
}

void Transports::warn_of_heap(uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(warned_of_heaps_, true)) return;
  }
  log_.write(LogLevel::Warn,
             "the heap of another rank of this host has " + std::to_string(bytes) +
                 " bytes, too many to be mapped beside all others under this process's "
                 "`ulimit -v`, so what lies there is copied on its way; raise the limit, lower "
                 "RDMACOLL_HEAP_BYTES, or start the ranks with rdmarun or torchrun, which say "
                 "how many there are");
}

Result<std::span<const std::byte>> Transports::open_heap(const Path& path, Deadline deadline) {
  if (path.heap.empty() || !path.transport->info().shares_memory)
    return std::span<const std::byte>();
  uint64_t bytes = 0;
  if (path.heap.size() < sizeof(bytes)) {
    return Status(StatusCode::InvalidArgument, "its address says nothing sensible of its heap");
  }
  std::memcpy(&bytes, path.heap.data(), sizeof(bytes));
  if (bytes > largest_peer_heap_) {
    warn_of_heap(bytes);
    return std::span<const std::byte>();
  }
  Result<Region> opened = open_region(path, path.heap.substr(sizeof(bytes)), deadline);
  if (!opened.ok()) return opened.status();
  const Region& region = opened.value();
  if (region.id != Heap::kRegion) {
    return Status(StatusCode::InvalidArgument, "its address names another region as its heap");
  }
  if (bytes > region.bytes) {
    return Status(StatusCode::InvalidArgument,
                  "its address says that its heap has " + std::to_string(bytes) +
                      " bytes, the region that holds it has " + std::to_string(region.bytes));
  }
  return std::span<const std::byte>(region.base, bytes);
}

}  // namespace rdmacoll
