// make_region: zeroed memory, registered with a transport under an id, and its key.
#pragma once

#include <memory>
#include <string>

#include "csrc/transport/transport.h"

namespace rdmacoll {

struct MadeRegion : Region {
  std::string key{};
};

inline Result<MadeRegion> make_region(Transport& transport, RegionId id, uint64_t bytes,
                                      Access access = Access::Full) {
  const Others others = takes_puts(access) ? Others::Write : Others::OnlyRead;
  Result<SharedSegment> made = SharedSegment::create(bytes, others);
  if (!made.ok()) return made.status();
  const auto memory = std::make_shared<SharedSegment>(made.take());
  Result<std::string> key = transport.register_region(id, RegionMemory::all_of(memory, access));
  if (!key.ok()) return key.status();
  return MadeRegion{{id, memory->data(), bytes}, key.take()};
}

}  // namespace rdmacoll
