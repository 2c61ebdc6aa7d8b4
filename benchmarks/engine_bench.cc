// The engine alone, without torch: time of one all_reduce by size over forked processes, beside
// what bounds it on this machine: the one-way latency of a flag, and memcpy by all ranks at once.
//   engine_bench [ranks, default 2]
// Floor: benchmarks.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "benchmarks/forked_ranks.h"

namespace {

using namespace rdmacoll;
using namespace rdmacoll::bench;

double all_reduce_us(Communicator& c, std::vector<float>& data, uint64_t count, int rounds) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    Communicator::WillWait here(c);
    if (count * sizeof(float) > 65536) run(c, c.barrier());
    const double begin = now_us();
    run(c, c.all_reduce(data.data(), data.data(), count, DType::Float32, ReduceOp::Sum));
    times.push_back(now_us() - begin);
  }
  return median(times);
}

double memcpy_gb_s(Communicator& c, std::vector<float>& from, std::vector<float>& to) {
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    run(c, c.barrier());
    const double begin = now_us();
    std::memcpy(to.data(), from.data(), from.size() * sizeof(float));
    times.push_back(now_us() - begin);
  }
  return static_cast<double>(from.size() * sizeof(float)) / median(times) / 1e3;
}

double flag_us(Shared& shared, int rank) {
  constexpr uint64_t kRounds = 20'000;
  const double begin = now_us();
  for (uint64_t i = 1; i <= kRounds && rank < 2; ++i) {
    if (rank == 0) shared.ping.store(i, std::memory_order_release);
    std::atomic<uint64_t>& awaited = rank == 0 ? shared.pong : shared.ping;
    for (uint64_t spins = 0; awaited.load(std::memory_order_acquire) != i; ++spins) {
      if (spins % 1024 == 1023) sched_yield();
    }
    if (rank == 1) shared.pong.store(i, std::memory_order_release);
  }
  return (now_us() - begin) / kRounds / 2;
}

void measure(Communicator& c, Shared& shared) {
  std::vector<float> data(16 << 20, 1.0f), other(16 << 20);
  const double flag = flag_us(shared, c.rank());
  const double copy = memcpy_gb_s(c, data, other);
  if (c.rank() == 0) {
    std::printf("%d ranks; flag %.2f us one way, memcpy %.1f GB/s per rank, all at once\n",
                c.size(), flag, copy);
    std::printf("%12s %12s %12s %12s\n", "bytes", "us", "algbw GB/s", "of memcpy");
  }
  for (uint64_t count = 1; count <= data.size(); count *= 4) {
    const uint64_t bytes = count * sizeof(float);
    const int rounds = bytes <= 65536 ? 2000 : bytes <= (4 << 20) ? 50 : 9;
    all_reduce_us(c, data, count, rounds / 10 + 1);
    const double us = all_reduce_us(c, data, count, rounds);
    const double gb_s = static_cast<double>(bytes) / us / 1e3;
    if (c.rank() == 0) {
      std::printf("%12llu %12.2f %12.3f %11.0f%%\n", static_cast<unsigned long long>(bytes), us,
                  gb_s, 100 * gb_s / copy);
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  if (ranks < 1 || ranks > kMaxRanks) {
    std::fprintf(stderr, "ranks=%d is not possible; give 1 to %d\n", ranks, kMaxRanks);
    return 2;
  }
  return run_ranks(ranks, measure);
}
