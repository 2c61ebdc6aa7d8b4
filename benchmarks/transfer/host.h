// Host: where an end of a pair runs: here, or in the network namespace of another process.
// Floor: benchmarks. Thread: a process's only one.
#pragma once

#include <sys/types.h>

#include <string>

namespace rdmacoll::bench {

struct Host {
  pid_t holder = 0;  // that process, and which keeps the namespace; 0: none
  std::string address = "127.0.0.1";
};

// Moves this process there, for good.
void enter(const Host& host);

}  // namespace rdmacoll::bench
