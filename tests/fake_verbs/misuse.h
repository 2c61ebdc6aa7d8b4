// Misuse: what a program may never do with a device, and what would go unnoticed on most. It ends
// the test at once.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace rdmacoll::fake {

[[noreturn]] inline void misuse(const char* what) {
  std::fprintf(stderr, "fake verbs: %s\n", what);
  std::abort();
}

inline void require(bool holds, const char* what) {
  if (!holds) misuse(what);
}

}  // namespace rdmacoll::fake
