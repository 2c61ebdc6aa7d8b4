// Host id and network namespace, from /proc. Floor: transport/shm.
#include "csrc/transport/shm/host_id.h"

#include <sys/stat.h>

#include <fstream>

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

}  // namespace rdmacoll
