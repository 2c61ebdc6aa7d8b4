// One collective at one size over forked processes, for scripts that interleave it with other
// programs: prints the median time and busbw, as nccl-tests defines it.
//   one_collective <all_gather|all_reduce> <ranks> <bytes> <rounds> [heap|ordinary]
// `bytes` is all_reduce's tensor, all_gather's result. With "heap" the call is in place on memory
// of the heap, else from one ordinary buffer to another. Floor: benchmarks.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "benchmarks/forked_ranks.h"

namespace {

using namespace rdmacoll;
using namespace rdmacoll::bench;

struct Wanted {
  std::string operation;
  int ranks;
  uint64_t bytes;
  int rounds;
  bool heap;
};

// Touched, and never freed: the process ends with the measurement.
std::byte* new_buffer(Communicator& c, uint64_t bytes, bool heap) {
  if (heap && c.heap() == nullptr) {
    std::fprintf(stderr, "there is no heap: RDMACOLL_HEAP_BYTES is 0\n");
    std::exit(1);
  }
  std::byte* data = heap ? c.heap()->allocate(bytes) : new std::byte[bytes];
  std::memset(data, 0, bytes);
  return data;
}

double median_us(Communicator& c, const Wanted& wanted) {
  const auto size = static_cast<uint64_t>(c.size());
  const uint64_t count = wanted.bytes / sizeof(float);
  std::byte* output = new_buffer(c, wanted.bytes, wanted.heap);
  const uint64_t block_bytes = wanted.bytes / size;
  std::vector<MutableBuffer> blocks;
  for (uint64_t i = 0; i < size; ++i) blocks.push_back({output + i * block_bytes, block_bytes});
  std::byte* whole = wanted.heap ? output : new_buffer(c, wanted.bytes, false);
  std::byte* block = wanted.heap ? output + static_cast<uint64_t>(c.rank()) * block_bytes : whole;
  std::vector<double> times;
  for (int i = 0; i < wanted.rounds + wanted.rounds / 10 + 1; ++i) {
    Communicator::WillWait here(c);
    if (wanted.bytes > 65536) run(c, c.barrier());
    const double begin = now_us();
    if (wanted.operation == "all_reduce") {
      run(c, c.all_reduce(whole, output, count, DType::Float32, ReduceOp::Sum));
    } else {
      run(c, c.all_gather({block, block_bytes}, blocks));
    }
    if (i > wanted.rounds / 10) times.push_back(now_us() - begin);
  }
  return median(times);
}

void measure(Communicator& c, const Wanted& wanted) {
  const double us = median_us(c, wanted);
  const double n = c.size();
  const double wire_share = (wanted.operation == "all_reduce" ? 2 : 1) * (n - 1) / n;
  const TransportCounters before = c.counters();
  median_us(c, wanted);
  const TransportCounters after = c.counters();
  if (c.rank() != 0) return;
  std::printf("%s ranks %d bytes %llu us %.2f busbw_MB/s %.2f registrations %llu control %llu\n",
              wanted.operation.c_str(), c.size(), static_cast<unsigned long long>(wanted.bytes), us,
              static_cast<double>(wanted.bytes) / us * wire_share,
              static_cast<unsigned long long>(after.registrations - before.registrations),
              static_cast<unsigned long long>(after.control_messages - before.control_messages));
}

}  // namespace

int main(int argc, char** argv) {
  Wanted wanted{argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : 0,
                argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0,
                argc > 4 ? std::atoi(argv[4]) : 0, argc > 5 && std::strcmp(argv[5], "heap") == 0};
  const bool known = wanted.operation == "all_reduce" || wanted.operation == "all_gather";
  if (!known || wanted.ranks < 1 || wanted.ranks > kMaxRanks || wanted.rounds < 1 ||
      wanted.bytes % (sizeof(float) * static_cast<uint64_t>(std::max(1, wanted.ranks))) != 0) {
    std::fprintf(
        stderr,
        "usage: one_collective <all_gather|all_reduce> <ranks> <bytes> <rounds> [heap|ordinary]\n");
    return 2;
  }
  return run_ranks(wanted.ranks, [&](Communicator& c, Shared&) { measure(c, wanted); });
}
