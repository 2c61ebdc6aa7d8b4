// ProcessId. Floor: base.
#include "csrc/base/process_id.h"

#include <sys/random.h>

#include <cerrno>

namespace rdmacoll {

Result<ProcessId> random_process_id() {
  ProcessId id;
  if (::getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size())) {
    return Status::from_errno("getrandom", errno);
  }
  return id;
}

std::string hex(const ProcessId& id) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : id) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace rdmacoll
