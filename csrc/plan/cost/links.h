// Links: what it costs to move bytes between ranks that share memory, and between hosts. What
// they are by default are estimates, for TCP on a fast LAN; a tuned table may say others
// (choice/link_rows.h). Floor: plan/cost. Thread: values.
//
// Whole numbers, because all ranks must come to the same prediction, also on different processors.
#pragma once

#include <cstdint>

namespace rdmacoll {

struct Links {
  // Between ranks of one island.
  struct Memory {
    int64_t latency_ns = 400;   // of a message, beside the work at its ends
    int64_t overhead_ns = 150;  // of a rank, for a message that it sends or takes
    int64_t gap_ps = 150;       // of a rank, for a byte that it loads or stores
    bool operator==(const Memory&) const = default;
  };
  // Between islands.
  struct Network {
    int64_t latency_ns = 15'000;
    int64_t overhead_ns = 4'000;
    int64_t gap_ps = 700;       // of a rank, for a byte out or in
    int64_t host_gap_ps = 400;  // of all ranks of a host together
    bool operator==(const Network&) const = default;
  };
  Memory memory;
  Network network;
  bool operator==(const Links&) const = default;
};

}  // namespace rdmacoll
