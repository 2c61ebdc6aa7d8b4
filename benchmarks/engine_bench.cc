// The engine alone, without torch: one all_reduce in place by size, over forked processes, on
// ordinary memory and in the heap, beside what bounds it on this machine: the one-way latency of a
// flag, and memcpy by all ranks at once. The last columns: its rate in memcpy's.
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

// How long so many calls take, one by one: the median.
template <typename Call>
double median_us(Communicator& c, uint64_t bytes, int calls, Call&& call) {
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) {
    if (bytes > 65536) run(c, c.barrier(kWaits));
    const double begin = now_us();
    call();
    times.push_back(now_us() - begin);
  }
  return median(times);
}

double all_reduce_us(Communicator& c, float* data, uint64_t count, int calls) {
  return median_us(c, count * sizeof(float), calls, [&] {
    run(c, c.all_reduce(data, data, count, DType::Float32, ReduceOp::Sum, kWaits));
  });
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

// One size, in short rounds that take turns. Medians; ratios of each round's times.
struct Row {
  std::vector<double> ordinary_us, heap_us, memcpy_us, of_memcpy, heap_of_memcpy;
};

Row measure_size(Communicator& c, float* ordinary, float* heap, float* other, uint64_t count) {
  const uint64_t bytes = count * sizeof(float);
  const int calls = bytes <= 65536 ? 400 : bytes <= (4 << 20) ? 20 : 3;
  Row row;
  for (int round = 0; round < 6; ++round) {
    const double plain = all_reduce_us(c, ordinary, count, calls);
    const double lent = all_reduce_us(c, heap, count, calls);
    const double copy = median_us(c, bytes, calls, [&] { std::memcpy(other, ordinary, bytes); });
    if (round == 0) continue;  // warm-up
    row.ordinary_us.push_back(plain);
    row.heap_us.push_back(lent);
    row.memcpy_us.push_back(copy);
    row.of_memcpy.push_back(copy / plain);
    row.heap_of_memcpy.push_back(copy / lent);
  }
  return row;
}

void measure(Communicator& c, Shared& shared) {
  constexpr uint64_t kMost = 16 << 20;
  std::vector<float> ordinary(kMost, 1.0f), other(kMost);
  auto* heap = reinterpret_cast<float*>(c.heap()->allocate(kMost * sizeof(float)));
  std::fill(heap, heap + kMost, 1.0f);
  const double flag = flag_us(shared, c.rank());
  if (c.rank() == 0) {
    std::printf("%d ranks; flag %.2f us one way; memcpy by all ranks at once\n", c.size(), flag);
    std::printf("%12s %12s %12s %12s %16s %16s\n", "bytes", "ordinary us", "heap us", "memcpy us",
                "ordinary/memcpy", "heap/memcpy");
  }
  for (uint64_t count = 1; count <= kMost; count *= 4) {
    const Row row = measure_size(c, ordinary.data(), heap, other.data(), count);
    if (c.rank() != 0) continue;
    std::printf("%12llu %12.2f %12.2f %12.2f %15.2fx %15.2fx\n",
                static_cast<unsigned long long>(count * sizeof(float)), median(row.ordinary_us),
                median(row.heap_us), median(row.memcpy_us), median(row.of_memcpy),
                median(row.heap_of_memcpy));
    std::fflush(stdout);
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
