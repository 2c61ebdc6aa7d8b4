// Forked ranks for the engine's benchmarks: one process per rank, and the memory over which they
// find each other before the engine connects them.
// Floor: benchmarks.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "csrc/engine/endpoint.h"
#include "tests/processes/meeting.h"

namespace rdmacoll::bench {

inline constexpr int kMaxRanks = Meeting::kMaxRanks;

struct Shared {
  Meeting meeting;
  alignas(64) std::atomic<uint64_t> ping;
  alignas(64) std::atomic<uint64_t> pong;
};

inline double now_us() { return static_cast<double>(SteadyClock().now_ns()) / 1e3; }

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Of calls that are waited for at once.
inline constexpr CallOptions kWaits{.waits = true};

inline void run(Communicator& c, Result<WorkPtr> started) {
  const Status status = started.ok() ? c.wait(*started.value(), -1, {}) : started.status();
  if (status.ok()) return;
  std::fprintf(stderr, "rank %d failed: %s\n", c.rank(), status.message().c_str());
  std::exit(1);
}

// Runs `measure` on a communicator of so many processes; 0 when all of them ended well. LOCAL_RANK
// is set, as a launcher would.
inline int run_ranks(int ranks, const std::function<void(Communicator&, Shared&)>& measure) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& shared = *new (memory) Shared();
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() != 0) continue;
    setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
    const auto fail = [rank](const Status& status) {
      std::fprintf(stderr, "rank %d: %s\n", rank, status.message().c_str());
      _exit(1);
    };
    auto config = Config::from_environment();
    if (!config.ok()) fail(config.status());
    auto endpoint = Endpoint::open(config.value());
    if (!endpoint.ok()) fail(endpoint.status());
    MeetingBootstrap bootstrap(shared.meeting, rank, ranks);
    auto communicator = endpoint.value()->create_communicator(rank, ranks, bootstrap, 60'000);
    if (!communicator.ok()) fail(communicator.status());
    measure(*communicator.value(), shared);
    std::fflush(stdout);
    communicator.value().reset();
    endpoint.value().reset();
    _exit(0);
  }
  int failed = 0, status = 0;
  while (wait(&status) > 0) failed |= status != 0;
  return failed;
}

}  // namespace rdmacoll::bench
