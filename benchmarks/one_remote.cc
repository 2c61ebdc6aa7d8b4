// Writes or reads of another process's memory at one size, so many of them under way at a time, for
// scripts that interleave them with other programs: prints MiB/s.
//   one_remote <write|read> <bytes> <count> <depth>
// Floor: benchmarks. Thread: a process's main one.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include "benchmarks/transfer/remote_way.h"

namespace {

using namespace rdmacoll;
using namespace rdmacoll::bench;

struct Wanted {
  bool is_read;
  uint64_t bytes;
  int count;
  int depth;
};

constexpr const char* kData = "data";
constexpr uint64_t kEnd = 1;  // the sender has ended

void receive(RemoteSide& side, const Wanted& wanted) {
  side.expose(kData, side.memory(wanted.bytes));
  side.wait_notified(kData, kEnd);
}

double seconds(RemoteSide& side, const Wanted& wanted, const OpenedPtr& there, std::byte* mine) {
  const SteadyClock clock;
  const int64_t began_ns = clock.now_ns();
  std::deque<WorkPtr> under_way;
  for (int i = 0; i < wanted.count + wanted.depth; ++i) {
    if (i >= wanted.depth) {
      side.wait(under_way.front());
      under_way.pop_front();
    }
    if (i >= wanted.count) continue;
    under_way.push_back(wanted.is_read ? side.read(there, 0, mine, wanted.bytes)
                                       : side.write(there, 0, mine, wanted.bytes, 0));
  }
  return static_cast<double>(clock.now_ns() - began_ns) / 1e9;
}

void send(RemoteSide& side, const Wanted& wanted) {
  const OpenedPtr there = side.open(kData);
  const RemoteMemoryPtr mine = side.memory(wanted.bytes);
  seconds(side, {wanted.is_read, wanted.bytes, wanted.depth, wanted.depth}, there, mine->data());
  const double took_s = seconds(side, wanted, there, mine->data());
  const double moved = static_cast<double>(wanted.bytes) * wanted.count;
  std::printf("%s bytes %llu MiB/s %.2f\n", wanted.is_read ? "read" : "write",
              static_cast<unsigned long long>(wanted.bytes), moved / took_s / (1 << 20));
  side.wait(side.write(there, 0, nullptr, 0, kEnd));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string operation = argc > 1 ? argv[1] : "";
  const Wanted wanted{operation == "read", argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0,
                      argc > 3 ? std::atoi(argv[3]) : 0, argc > 4 ? std::atoi(argv[4]) : 0};
  if ((operation != "read" && operation != "write") || wanted.bytes == 0 || wanted.depth < 1 ||
      wanted.count < wanted.depth) {
    std::fprintf(stderr,
                 "usage: one_remote <write|read> <bytes> <count, depth or more> <depth, 1 or "
                 "more>\n");
    return 2;
  }
  void* memory =
      mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) give_up("there is no memory to share");
  auto* const meeting = new (memory) Meeting();
  for (const bool sends : {true, false}) {
    if (fork() != 0) continue;
    setenv("LOCAL_RANK", sends ? "0" : "1", 1);
    {
      RemoteSide side({.sends = sends, .meeting = meeting});
      sends ? send(side, wanted) : receive(side, wanted);
    }
    std::fflush(stdout);
    _exit(0);
  }
  int failed = 0, status = 0;
  while (wait(&status) > 0) failed |= status != 0;
  return failed;
}
