// Where this process runs: which host, and which network namespace of it (abstract socket names,
// by which processes meet, do not reach beyond one).
// Floor: transport/shm. Thread: any.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/config.h"
#include "csrc/base/status.h"

namespace rdmacoll {

inline constexpr size_t kMaxHostIdBytes = 255;

// RDMACOLL_HOST_ID, else the kernel's boot id: equal for all containers of a host, new at every
// boot.
Result<std::string> host_id(const Config& config);

// Equal in processes of one network namespace of one host; 0 when the kernel does not tell.
uint64_t network_namespace();

}  // namespace rdmacoll
