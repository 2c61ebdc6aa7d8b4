// Region and slices: memory that peers may write, named without addresses. Bounds are checked where
// a slice is made. Floor: memory. Thread: values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/memory/copy.h"

namespace rdmacoll {

using RegionId = uint32_t;  // unique in its process as long as anybody may reach the region
inline constexpr RegionId kNoRegion = ~RegionId{0};

struct Region {
  RegionId id = kNoRegion;
  std::byte* base = nullptr;
  uint64_t bytes = 0;

  bool holds(uint64_t offset, uint64_t count) const {
    return offset <= bytes && count <= bytes - offset;
  }
};

// Memory of this process. A transport that does not map its peer's memory wants it in a region.
struct LocalSlice {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  RegionId region = kNoRegion;
  // How a transport writes the copy that it makes itself, of these bytes or to them.
  Stores stores = Stores::Cached;
};

// Memory of a peer, in a region that this process has opened.
struct RemoteSlice {
  RegionId region = kNoRegion;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

}  // namespace rdmacoll
