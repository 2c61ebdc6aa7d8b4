// Host id, network namespace and island, from /proc. Floor: transport/shm.
#include "csrc/transport/shm/host_id.h"

#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "csrc/base/process_id.h"
#include "csrc/base/siphash.h"

namespace rdmacoll {

Result<std::string> host_id(const Config& config) {
  if (config.host_id.size() > kMaxHostIdBytes) {
    return Status(StatusCode::InvalidArgument,
                  "RDMACOLL_HOST_ID has " + std::to_string(config.host_id.size()) +
                      " bytes; use at most " + std::to_string(kMaxHostIdBytes));
  }
  if (!config.host_id.empty()) return config.host_id;
  static constexpr const char* kPath = "/proc/sys/kernel/random/boot_id";
  std::ifstream file(kPath);
  std::string id;
  if (!(file >> id)) {
    return Status(StatusCode::System, std::string("cannot read ") + kPath +
                                          " to tell this host from others; set RDMACOLL_HOST_ID "
                                          "to a name that only ranks of this host have");
  }
  return id;
}

uint64_t network_namespace() {
  struct stat file;
  return ::stat("/proc/self/ns/net", &file) == 0 ? file.st_ino : 0;
}

// A hash, as a host id may be long. Nobody gains by finding two that have the same: GroupSetup
// refuses pairs that do not map. So its keys are no secret, and two tags make chance no matter.
std::string island_of(const std::string& host, uint64_t network_namespace, const UserView& user) {
  if (network_namespace == 0 || user.user_namespace == 0 || user.ambiguous(user.mine)) return "";
  uint64_t tags[2];
  for (uint64_t i = 0; i < 2; ++i) {
    tags[i] = SipHash({.low = i})
                  .add(network_namespace)
                  .add(user.user_namespace)
                  .add(user.mine)
                  .finish(host.data(), host.size());
  }
  ProcessId bytes;
  static_assert(sizeof(bytes) == sizeof(tags));
  std::memcpy(bytes.data(), tags, sizeof(tags));
  return hex(bytes);
}

}  // namespace rdmacoll
