// milliseconds: a timeout of Python's, in whole milliseconds. Floor: torch_ext/base. Thread: any.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace rdmacoll::torch_ext {

inline int64_t milliseconds(double seconds) {
  constexpr double kMostSeconds = 1e9;
  return static_cast<int64_t>(std::ceil(std::min(seconds, kMostSeconds) * 1000));
}

}  // namespace rdmacoll::torch_ext
