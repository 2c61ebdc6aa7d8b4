// MemoryLimits: how much memory, and how much address space, this process may have.
// Floor: base. Thread: any; a value.
#pragma once

#include <cstdint>
#include <string>

namespace rdmacoll {

struct MemoryLimits {
  static constexpr uint64_t kNone = UINT64_MAX;

  uint64_t physical_bytes = kNone;  // the machine's
  uint64_t cgroup_bytes = kNone;    // the least of its cgroup and those above it
  uint64_t address_bytes = kNone;   // RLIMIT_AS, `ulimit -v`
  uint64_t mapped_bytes = 0;        // address space that is used now

  // Of this process, now.
  static MemoryLimits of_this_process();
  // Of this process, from files below `root`, which is "" but in tests.
  static uint64_t cgroup_limit(const std::string& root);

  // Address space that is left.
  uint64_t unmapped_bytes() const {
    if (address_bytes == kNone) return kNone;
    return address_bytes - (mapped_bytes < address_bytes ? mapped_bytes : address_bytes);
  }
};

}  // namespace rdmacoll
