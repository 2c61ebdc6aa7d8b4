// Where this process runs: which host, and which network namespace of it (abstract socket names,
// by which processes meet, do not reach beyond one).
// Floor: transport/shm. Thread: any.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/status.h"

namespace rdmacoll {

// The kernel's boot id: equal for all containers of a host, new at every boot.
Result<std::string> boot_id();

// Equal in processes of one network namespace of one host; 0 when the kernel does not tell.
uint64_t network_namespace();

}  // namespace rdmacoll
