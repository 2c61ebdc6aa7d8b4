// Where this process runs: which host, which network namespace of it (abstract socket names, by
// which processes meet, do not reach beyond one), and whom shm joins to it.
// Floor: transport/shm. Thread: any.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/config.h"
#include "csrc/base/same_user.h"
#include "csrc/base/status.h"

namespace rdmacoll {

inline constexpr size_t kMaxHostIdBytes = 255;

// RDMACOLL_HOST_ID, else the kernel's boot id: equal for all containers of a host, new at every
// boot.
Result<std::string> host_id(const Config& config);

// Equal in processes of one network namespace of one host; 0 when the kernel does not tell.
uint64_t network_namespace();

// TransportInfo::island: equal in processes of one host, network namespace, user namespace and
// user, whom nothing keeps from meeting over shm. Empty when the kernel does not tell one of them,
// or shows several users as this one: then nobody counts as this user.
std::string island_of(const std::string& host, uint64_t network_namespace, const UserView& user);

}  // namespace rdmacoll
