// Prints the one-way latency, in microseconds, of a flag in memory shared by two processes on two
// cores: the least that any message between two ranks of a host can take.
// Floor: none, it stands alone. Thread: one per process.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>

namespace {

constexpr int kRounds = 9;
constexpr int kTripsPerRound = 20'000;
constexpr size_t kLineBytes = 64;

struct Flags {
  alignas(kLineBytes) std::atomic<uint64_t> ping{0};
  alignas(kLineBytes) std::atomic<uint64_t> pong{0};
};

void pin(int nth) {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && nth-- == 0) CPU_SET(cpu, &one);
  if (CPU_COUNT(&one) == 1) sched_setaffinity(0, sizeof one, &one);
}

void await(const std::atomic<uint64_t>& flag, uint64_t value) {
  while (flag.load(std::memory_order_acquire) != value) {
  }
}

void answer(Flags& flags) {
  pin(1);
  for (uint64_t trip = 1; trip <= uint64_t{kRounds} * kTripsPerRound; ++trip) {
    await(flags.ping, trip);
    flags.pong.store(trip, std::memory_order_release);
  }
  _exit(0);
}

double median_us(Flags& flags) {
  std::array<double, kRounds> rounds;
  uint64_t trip = 0;
  for (double& round : rounds) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < kTripsPerRound; ++i) {
      flags.ping.store(++trip, std::memory_order_release);
      await(flags.pong, trip);
    }
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    round = took.count() / kTripsPerRound / 2;
  }
  std::ranges::sort(rounds);
  return rounds[kRounds / 2];
}

}  // namespace

int main() {
  void* memory =
      mmap(nullptr, sizeof(Flags), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& flags = *new (memory) Flags;
  const pid_t child = fork();
  if (child == 0) answer(flags);
  pin(0);
  std::printf("%.4f\n", median_us(flags));
  waitpid(child, nullptr, 0);
}
