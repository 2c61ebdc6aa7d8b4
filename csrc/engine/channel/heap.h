// Heap: memory of this process that peers of the same host map and network devices know, so that
// operations on it copy nothing. An endpoint has one, and may have it from an endpoint before it:
// what lies in it outlives them.
// Floor: engine/channel. Thread: any, but where it says the driver.
//
// It is one shared segment, mapped by peers when they are met. It is as large as it may ever get,
// but takes pages only where it is used, and never returns them to the system. Devices, to which
// registering takes the pages at once, learn of it extent by extent (memory/heap_space.h).
//
// fork(): the child sees the parent's memory itself, not a copy of it, as with tensors that were
// share_memory_()'d. It can neither allocate nor free there.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/config.h"
#include "csrc/base/limits.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/memory/heap_space.h"
#include "csrc/memory/region.h"
#include "csrc/memory/shared_segment.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

struct HeapStats {
  uint64_t capacity_bytes = 0;
  uint64_t extent_bytes = 0;     // handed out at some time, or ready to be
  uint64_t allocated_bytes = 0;  // now
  uint64_t peak_bytes = 0;
  uint64_t allocations = 0;  // ever
  uint64_t refused = 0;      // for lack of room, ever
};

class Heap {
 public:
  static constexpr uint32_t kMaxExtents = 32;  // each is as large as all before it: enough

  // Of the size that choose_heap_size() chooses; nullptr where that is 0.
  static Result<std::shared_ptr<Heap>> create(const Config& config);

  // What the transports call the memory as a whole, which those that share memory know, and its
  // extents, which the others do. The same for every endpoint, which makes these regions first.
  static constexpr RegionId kRegion = 0;
  static constexpr RegionId kFirstExtent = 1;
  static constexpr uint32_t kRegions = 1 + kMaxExtents;

  const std::shared_ptr<SharedSegment>& memory() const { return memory_; }
  std::byte* base() const { return base_; }
  uint64_t capacity() const { return capacity_; }
  uint64_t zero_copy_local_bytes() const { return zero_copy_local_bytes_; }  // Config's

  // Cache-aligned and not zeroed. nullptr: there is no room, which is warned of once, or this is a
  // forked child.
  std::byte* allocate(uint64_t bytes);
  // How many bytes that were; 0 in a forked child, which frees nothing.
  uint64_t free(std::byte* data);
  HeapStats stats() const;

  // From now on the transport, which maps no memory of peers, knows all extents. One that cannot
  // take an extent (locked memory) is warned of once; what lies in it is copied on the way.
  void register_with(Transport& transport);
  // The transport is about to be closed.
  void forget(const Transport& transport);

  // --- the driver -----------------------------------------------------------------------------
  bool holds(const std::byte* data, uint64_t bytes) const {
    const auto offset = static_cast<uint64_t>(data - base_);  // wraps for what lies before it
    return offset < capacity_ && bytes <= capacity_ - offset;
  }
  // Where these bytes lie in what all transports can put from, and peers put to, if they do.
  struct Part {
    RegionId region;
    uint64_t offset;
  };
  std::optional<Part> part_of(const std::byte* data, uint64_t bytes) const;
  // With which a peer that is reached over the transport opens such a part; empty: it cannot.
  std::string_view key_of(RegionId part, const Transport& transport) const;

 private:
  Heap(std::shared_ptr<SharedSegment> memory, const Config& config);
  struct Key {
    std::atomic<const Transport*> transport{nullptr};
    std::string bytes;  // written before `transport`
  };
  struct Extent {
    uint64_t end = 0;
    std::array<Key, kMaxTransports> keys;
    // With all transports. If it becomes false, then before anybody is reached over the one that
    // refuses, so never in the middle of a zero-copy operation over it.
    std::atomic<bool> registered{false};
  };

  bool extend(uint64_t bytes);                                 // under the mutex
  void register_extent(uint32_t index, Transport& transport);  // the same

  const std::shared_ptr<SharedSegment> memory_;
  std::byte* const base_;
  const uint64_t capacity_;
  const uint64_t zero_copy_local_bytes_;
  const Log log_;
  const pid_t pid_;

  std::array<Extent, kMaxExtents> extents_;
  std::atomic<uint32_t> extent_count_{0};

  mutable std::mutex mutex_;  // what follows
  HeapSpace space_;
  std::vector<Transport*> transports_;
  HeapStats stats_;
  bool warned_of_registration_ = false;
};

}  // namespace rdmacoll
