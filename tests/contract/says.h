// says(): whether a status has these words in it. Floor: tests. Thread: any.
#pragma once

#include <string>

#include "csrc/base/status.h"

namespace rdmacoll {

inline bool says(const Status& status, const std::string& words) {
  return status.message().find(words) != std::string::npos;
}

}  // namespace rdmacoll
