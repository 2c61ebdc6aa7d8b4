// ShmAddress and region key: the bytes by which others find a process and its regions. They come
// from outside, so parsing trusts nothing. Floor: transport/shm. Thread: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "csrc/base/process_id.h"
#include "csrc/base/status.h"
#include "csrc/memory/region.h"

namespace rdmacoll {

struct ShmAddress {
  ProcessId process{};
  uint32_t pid = 0;  // for people: in another pid namespace it means nothing
  uint64_t network_namespace = 0;
  std::string host;
};

// The abstract unix socket on which a process listens.
std::string socket_name(const ProcessId& process);

struct RegionKey {
  ProcessId owner{};
  RegionId region = kNoRegion;
  uint64_t generation = 0;  // of the id (transport/lease.h)
  uint64_t bytes = 0;
};

std::string encode(const ShmAddress& address);
std::string encode(const RegionKey& key);

// InvalidArgument when the bytes are not an address (a key) of this version of shm.
Result<ShmAddress> parse_shm_address(const std::string& bytes);
Result<RegionKey> parse_region_key(std::string_view bytes);

}  // namespace rdmacoll
