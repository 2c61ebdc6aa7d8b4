// Log: one write(2) per line, so that lines of several ranks do not mix. Floor: base.
#include "csrc/base/log.h"

#include <unistd.h>

namespace rdmacoll {

void Log::write(LogLevel level, const std::string& text) const {
  if (!enabled(level)) return;
  static constexpr const char* kNames[] = {"error", "warning", "info", "debug"};
  const std::string line =
      "[rdmacoll " + name_ + "] " + kNames[static_cast<int>(level)] + ": " + text + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace rdmacoll
