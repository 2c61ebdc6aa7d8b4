// Meets one process over whatever reaches it, where a test has but one. Floor: tests.
#pragma once

#include <string>

#include "csrc/engine/connect/transports.h"

namespace rdmacoll {

inline Result<Path> connect_one(Transports& transports, const std::string& address,
                                Deadline deadline) {
  Path path;
  const auto statuses = transports.connect_all({address}, deadline, [&](size_t, const Path& met) {
    path = met;
    return Status();
  });
  if (!statuses[0].ok()) return statuses[0];
  return path;
}

}  // namespace rdmacoll
