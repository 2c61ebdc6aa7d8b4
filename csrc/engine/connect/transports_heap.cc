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
  std::vector<Status> outcomes;
  for (Transport* transport : transports_) {
    outcomes.push_back(transport->shares_memory()
                           ? transport->register_region(Heap::kRegion, heap->memory())
                           : Status(StatusCode::Unsupported, "it shares no memory"));
    if (transport->shares_memory()) RDMACOLL_RETURN_IF_ERROR(outcomes.back());
  }
  heap_ = std::move(heap);
  for (Transport* transport : in_use()) heap_->register_with(*transport);
  const std::lock_guard lock(mutex_);
  registered_.emplace(Heap::kRegion, std::move(outcomes));
  return Status();
}

// Its size, 8 bytes, and the key of its region.
std::string Transports::heap_section() const {
  return bytes_of(heap_->capacity()) + region_key(Heap::kRegion);
}

std::string Transports::largest_heap_section() const { return bytes_of(largest_peer_heap_); }

Status Transports::offer_heap(const Path& path) {
  if (heap_ == nullptr || !path.transport->shares_memory()) return Status();
  if (!heap_is_mapped_by(path)) return Status();
  const std::lock_guard lock(mutex_);
  if (!offered_heap_.emplace(path.transport, path.peer).second) return Status();
  return path.transport->offer_region(path.peer, Heap::kRegion);
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
  if (path.heap.empty() || !path.transport->shares_memory()) return std::span<const std::byte>();
  uint64_t bytes = 0;
  if (path.heap.size() < sizeof(bytes)) {
    return Status(StatusCode::InvalidArgument, "its card says nothing sensible of its heap");
  }
  std::memcpy(&bytes, path.heap.data(), sizeof(bytes));
  if (bytes > largest_peer_heap_) {
    warn_of_heap(bytes);
    return std::span<const std::byte>();
  }
  RDMACOLL_RETURN_IF_ERROR(open_region(path, path.heap.substr(sizeof(bytes)), deadline));
  const std::byte* base = path.transport->map(path.peer, Heap::kRegion);
  if (base == nullptr) {
    return Status(StatusCode::InvalidArgument, "its card names another region as its heap");
  }
  if (const uint64_t held = path.transport->opened_bytes(path.peer, Heap::kRegion); bytes > held) {
    return Status(StatusCode::InvalidArgument,
                  "its card says that its heap has " + std::to_string(bytes) +
                      " bytes, the region that holds it has " + std::to_string(held));
  }
  return std::span<const std::byte>(base, bytes);
}

}  // namespace rdmacoll
