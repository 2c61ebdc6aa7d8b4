// Heap: memory of this process that peers of the same host map and network devices know, so that
// operations on it copy nothing. One per endpoint, made with it.
// Floor: engine. Thread: any, but where it says the driver.
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
#include <vector>

#include "csrc/base/config.h"
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

  // `memory` is a region of this id with the transports that share memory; its extents become
  // regions with the ids from `first_extent` on.
  Heap(std::shared_ptr<SharedSegment> memory, RegionId region, RegionId first_extent,
       const Config& config);

  RegionId region() const { return region_; }
  std::byte* base() const { return base_; }
  uint64_t capacity() const { return capacity_; }
  uint64_t lend_bytes() const { return lend_bytes_; }  // Config::lend_bytes

  // Cache-aligned and not zeroed. nullptr: there is no room, which is warned of once, or this is a
  // forked child.
  std::byte* allocate(uint64_t bytes);
  void free(std::byte* data);
  HeapStats stats() const;

  // From now on the transport knows all extents. One that cannot take an extent (locked memory) is
  // warned of once; what lies in it is copied on the way.
  void register_with(Transport& transport);

  // --- the driver -----------------------------------------------------------------------------
  bool holds(const std::byte* data, uint64_t bytes) const {
    const auto offset = static_cast<uint64_t>(data - base_);  // wraps for what lies before it
    return offset < capacity_ && bytes <= capacity_ - offset;
  }
  // The region in which all transports can put from these bytes; kNoRegion: there is none.
  RegionId source_region(const std::byte* data, uint64_t bytes) const;

 private:
  struct Extent {
    uint64_t end = 0;
    // With all transports. It becomes false, if ever, before anybody is reached over the one that
    // refuses, so never in the middle of an operation that lends over it.
    std::atomic<bool> registered{false};
  };

  bool extend(uint64_t bytes);                                 // under the mutex
  void register_extent(uint32_t index, Transport& transport);  // the same

  const std::shared_ptr<SharedSegment> memory_;
  std::byte* const base_;
  const uint64_t capacity_;
  const RegionId region_;
  const RegionId first_extent_;
  const uint64_t lend_bytes_;
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
