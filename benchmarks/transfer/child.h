// What a child of a pair is told, and does. Floor: benchmarks. Thread: the child's main one.
#pragma once

#include <semaphore.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "benchmarks/transfer/way.h"

namespace rdmacoll::bench {

inline constexpr uint64_t kMostBytes = 256u << 20;

// Memory of the parent and a child.
struct Orders {
  enum class What : uint8_t { Prepare, Transfer, Fill, Compare, Leave };
  sem_t begin;
  sem_t done;
  What what;
  uint64_t bytes;
  int count;
  double begun_cpu_us;  // of this process, before the first send
  double median_us;     // of the sends, but for the first
  bool is_right;
};

// That this process has used, or another one.
double cpu_us(clockid_t clock);

// Does as it is told, and ends the process.
// starts: how often the two have begun, counted by both.
[[noreturn]] void obey(Orders& orders, std::atomic<uint64_t>& starts, const Place& place,
                       const NamedWay& named);

}  // namespace rdmacoll::bench
