// make_region: zeroed memory, registered with a transport under an id.
#pragma once

#include <memory>

#include "csrc/transport/transport.h"

namespace rdmacoll {

inline Result<Region> make_region(Transport& transport, RegionId id, uint64_t bytes) {
  Result<SharedSegment> made = SharedSegment::create(bytes);
  if (!made.ok()) return made.status();
  const auto memory = std::make_shared<SharedSegment>(made.take());
  RDMACOLL_RETURN_IF_ERROR(transport.register_region(id, memory));
  return Region{id, memory->data(), bytes};
}

}  // namespace rdmacoll
