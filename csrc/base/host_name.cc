// The host's name. Floor: base.
#include "csrc/base/host_name.h"

#include <limits.h>
#include <unistd.h>

namespace rdmacoll {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, HOST_NAME_MAX) == 0 ? name : "unknown";
}

}  // namespace rdmacoll
