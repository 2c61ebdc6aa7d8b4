// Log lines on stderr with level and rank. Not for hot paths. Floor: base. Thread: any.
#pragma once

#include <string>

#include "csrc/base/config.h"

namespace rdmacoll {

class Log {
 public:
  Log(LogLevel level, std::string name) : level_(level), name_(std::move(name)) {}
  bool enabled(LogLevel level) const { return level <= level_; }
  void write(LogLevel level, const std::string& text) const;
  // What everybody is told who hears warnings, and is none.
  void note(const std::string& text) const;

 private:
  LogLevel level_;
  std::string name_;  // "rank 3": whose line it is
};

}  // namespace rdmacoll
