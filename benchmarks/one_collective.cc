// One collective at one size over forked processes, for scripts that interleave it with other
// programs: prints the median time and busbw, as nccl-tests defines it.
//   one_collective <operation> <ranks> <bytes> <rounds> [heap|ordinary]
// `bytes` is all_reduce's tensor, all_gather's result, all_to_all's input and output, and what each
// rank sends and receives in send_recv. With "heap" all_reduce and all_gather are in place, and all
// memory is the heap's; else calls go from one ordinary buffer to another. Floor: benchmarks.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
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

struct Buffers {
  std::byte* input;
  std::byte* output;
};

using Call = std::function<void(Communicator&, const Buffers&, uint64_t bytes)>;

void all_reduce(Communicator& c, const Buffers& buffers, uint64_t bytes) {
  run(c, c.all_reduce(buffers.input, buffers.output, bytes / sizeof(float), DType::Float32,
                      ReduceOp::Sum, kWaits));
}

template <typename Buffer>
std::vector<Buffer> blocks_of(Communicator& c, std::byte* memory, uint64_t bytes) {
  const uint64_t block_bytes = bytes / static_cast<uint64_t>(c.size());
  std::vector<Buffer> blocks;
  for (uint64_t at = 0; at < bytes; at += block_bytes) blocks.push_back({memory + at, block_bytes});
  return blocks;
}

void all_gather(Communicator& c, const Buffers& buffers, uint64_t bytes) {
  const auto mine = blocks_of<ConstBuffer>(c, buffers.input, bytes)[static_cast<size_t>(c.rank())];
  run(c, c.all_gather(mine, blocks_of<MutableBuffer>(c, buffers.output, bytes), kWaits));
}

void all_to_all(Communicator& c, const Buffers& buffers, uint64_t bytes) {
  run(c, c.all_to_all(blocks_of<ConstBuffer>(c, buffers.input, bytes),
                      blocks_of<MutableBuffer>(c, buffers.output, bytes), kWaits));
}

// To the next rank, from the one before.
void send_recv(Communicator& c, const Buffers& buffers, uint64_t bytes) {
  auto received = c.recv({buffers.output, bytes}, (c.rank() + c.size() - 1) % c.size(), 0, kWaits);
  auto sent = c.send({buffers.input, bytes}, (c.rank() + 1) % c.size(), 0, kWaits);
  if (!received.ok()) return run(c, std::move(received));
  if (!sent.ok()) return run(c, std::move(sent));
  Work* const both[] = {received.value().get(), sent.value().get()};
  static_cast<void>(c.wait_all(both, -1, {}));
  run(c, std::move(received));
  run(c, std::move(sent));
}

struct Known {
  Call call;
  bool in_place;                      // where it is on memory of the heap
  double (*crossings)(double ranks);  // of each byte between ranks, as nccl-tests counts
};

const std::map<std::string, Known> kKnown{
    {"all_reduce", {all_reduce, true, [](double n) { return 2 * (n - 1) / n; }}},
    {"all_gather", {all_gather, true, [](double n) { return (n - 1) / n; }}},
    {"all_to_all", {all_to_all, false, [](double n) { return (n - 1) / n; }}},
    {"send_recv", {send_recv, false, [](double) { return 1.0; }}}};

double median_us(Communicator& c, const Wanted& wanted) {
  const Known& known = kKnown.at(wanted.operation);
  const bool in_place = wanted.heap && known.in_place;
  std::byte* output = new_buffer(c, wanted.bytes, wanted.heap);
  const Buffers buffers{in_place ? output : new_buffer(c, wanted.bytes, wanted.heap), output};
  std::vector<double> times;
  for (int i = 0; i < wanted.rounds + wanted.rounds / 10 + 1; ++i) {
    if (wanted.bytes > 65536) run(c, c.barrier(kWaits));
    const double begin = now_us();
    known.call(c, buffers, wanted.bytes);
    if (i > wanted.rounds / 10) times.push_back(now_us() - begin);
  }
  return median(times);
}

void measure(Communicator& c, const Wanted& wanted) {
  const double us = median_us(c, wanted);
  const double crossings = kKnown.at(wanted.operation).crossings(c.size());
  const TransportCounters before = c.counters();
  median_us(c, wanted);
  const TransportCounters after = c.counters();
  if (c.rank() != 0) return;
  std::printf("%s ranks %d bytes %llu us %.2f busbw_MB/s %.2f registrations %llu control %llu\n",
              wanted.operation.c_str(), c.size(), static_cast<unsigned long long>(wanted.bytes), us,
              static_cast<double>(wanted.bytes) / us * crossings,
              static_cast<unsigned long long>(after.registrations - before.registrations),
              static_cast<unsigned long long>(after.control_messages - before.control_messages));
}

}  // namespace

int main(int argc, char** argv) {
  Wanted wanted{argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : 0,
                argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0,
                argc > 4 ? std::atoi(argv[4]) : 0, argc > 5 && std::strcmp(argv[5], "heap") == 0};
  if (!kKnown.contains(wanted.operation) || wanted.ranks < 1 || wanted.ranks > kMaxRanks ||
      wanted.rounds < 1 ||
      wanted.bytes % (sizeof(float) * static_cast<uint64_t>(std::max(1, wanted.ranks))) != 0) {
    std::fprintf(stderr,
                 "usage: one_collective <all_gather|all_reduce|all_to_all|send_recv> <ranks> "
                 "<bytes> <rounds> [heap|ordinary]\n");
    return 2;
  }
  return run_ranks(wanted.ranks, [&](Communicator& c, Shared&) { measure(c, wanted); });
}
