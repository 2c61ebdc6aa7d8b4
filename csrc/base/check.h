// CHECK: programmer errors only; on in release builds. An operating error is a Status, never a
// CHECK. Floor: base. Thread: any.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace rdmacoll {

[[noreturn, gnu::cold]] inline void check_failed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "rdmacoll: %s:%d: broken invariant: %s\n", file, line, what);
  std::abort();
}

}  // namespace rdmacoll

#define RDMACOLL_CHECK(condition)                               \
  do {                                                          \
    if (!(condition)) [[unlikely]]                              \
      ::rdmacoll::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)
