// Transports: the heap of this process, and those of others. Floor: engine. Thread: any.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/engine/transports.h"

namespace rdmacoll {
namespace {

// The card's section about the heap: this, and behind it the key of the region.
struct HeapCard {
  uint32_t region;
  uint32_t reserved;
  uint64_t bytes;
};
static_assert(sizeof(HeapCard) == 16);

uint64_t wanted_bytes(const Config& config) {
  if (config.heap_bytes >= 0) return static_cast<uint64_t>(config.heap_bytes);
  const auto pages = static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  return pages / 2 * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

Status Transports::make_heap(const Config& config) {
  RDMACOLL_CHECK(heap_ == nullptr);
  const uint64_t bytes = wanted_bytes(config);
  if (bytes == 0) return Status();
  Result<SharedSegment> made = SharedSegment::create(bytes);
  if (!made.ok()) {
    return Status(made.status().code(),
                  "the heap (RDMACOLL_HEAP_BYTES; 0 switches it off): " + made.status().message());
  }
  const auto memory = std::make_shared<SharedSegment>(made.take());
  Result<RegionId> first = new_regions(1 + Heap::kMaxExtents);
  if (!first.ok()) return first.status();
  std::vector<Status> outcomes;
  for (Transport* transport : transports_) {
    outcomes.push_back(transport->shares_memory()
                           ? transport->register_region(first.value(), memory)
                           : Status(StatusCode::Unsupported, "it shares no memory"));
    if (transport->shares_memory()) RDMACOLL_RETURN_IF_ERROR(outcomes.back());
  }
  heap_ = std::make_unique<Heap>(memory, first.value(), first.value() + 1, config);
  for (Transport* transport : in_use()) heap_->register_with(*transport);
  const std::lock_guard lock(mutex_);
  registered_.emplace(first.value(), std::move(outcomes));
  return Status();
}

std::string Transports::heap_section() const {
  const HeapCard card{heap_->region(), 0, heap_->capacity()};
  return std::string(reinterpret_cast<const char*>(&card), sizeof(card)) +
         region_key(heap_->region());
}

Status Transports::offer_heap(const Path& path) {
  if (heap_ == nullptr || !path.transport->shares_memory()) return Status();
  const std::lock_guard lock(mutex_);
  if (!offered_heap_.emplace(path.transport, path.peer).second) return Status();
  return path.transport->offer_region(path.peer, heap_->region());
}

Result<std::span<const std::byte>> Transports::open_heap(const Path& path, Deadline deadline) {
  if (path.heap.empty() || !path.transport->shares_memory()) return std::span<const std::byte>();
  HeapCard card;
  if (path.heap.size() < sizeof(card)) {
    return Status(StatusCode::InvalidArgument, "its card says nothing sensible of its heap");
  }
  std::memcpy(&card, path.heap.data(), sizeof(card));
  RDMACOLL_RETURN_IF_ERROR(open_region(path, path.heap.substr(sizeof(card)), deadline));
  const std::byte* base = path.transport->map(path.peer, card.region);
  if (base == nullptr) {
    return Status(StatusCode::InvalidArgument, "its card names another region as its heap");
  }
  return std::span<const std::byte>(base, card.bytes);
}

}  // namespace rdmacoll
