// Log: one write(2) per line, so that lines of several ranks do not mix. Floor: base.
#include "csrc/base/log.h"

#include <unistd.h>

namespace rdmacoll {

namespace {

void write_line(const std::string& name, const std::string& text) {
  const std::string line = "[rdmacoll " + name + "] " + text + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void Log::write(LogLevel level, const std::string& text) const {
  static constexpr const char* kNames[] = {"error", "warning", "info", "debug"};
  if (enabled(level)) write_line(name_, std::string(kNames[static_cast<int>(level)]) + ": " + text);
}

void Log::note(const std::string& text) const {
  if (enabled(LogLevel::Warn)) write_line(name_, text);
}

}  // namespace rdmacoll
