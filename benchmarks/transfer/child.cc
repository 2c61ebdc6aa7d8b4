// Floor: benchmarks. Thread: the child's main one.
#include "benchmarks/transfer/child.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace rdmacoll::bench {
namespace {

constexpr double kApartUs = 20'000;

double now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

// Sender and receiver begin on cores of their own; the system may move them then. On a machine with
// other work it may leave two that were woken together on one core for ever.
void start_apart(bool sends) {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    if (sends && CPU_COUNT(&one) > 0) break;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
  }
  sched_setaffinity(0, sizeof one, &one);
  for (const double until = now_us() + kApartUs; now_us() < until;) {
  }
  sched_setaffinity(0, sizeof allowed, &allowed);
}

double transfer(Way& way, bool sends, int count) {
  if (!sends) {
    way.serve(count);
    return 0;
  }
  std::vector<double> times_us;
  for (int i = 0; i < count; ++i) {
    const double began = now_us();
    way.send();
    times_us.push_back(now_us() - began);
  }
  if (count > 1) times_us.erase(times_us.begin());  // the caches were another's
  const auto middle = times_us.begin() + static_cast<ptrdiff_t>(times_us.size() / 2);
  std::nth_element(times_us.begin(), middle, times_us.end());
  return *middle;
}

std::byte right_byte(uint64_t at, int seed) {
  return static_cast<std::byte>((at * 2654435761u + static_cast<uint64_t>(seed)) >> 13);
}

void fill(std::byte* data, uint64_t bytes, int seed) {
  for (uint64_t i = 0; i < bytes; ++i) data[i] = right_byte(i, seed);
}

bool is_filled(const std::byte* data, uint64_t bytes, int seed) {
  for (uint64_t i = 0; i < bytes; ++i) {
    if (data[i] != right_byte(i, seed)) return false;
  }
  return true;
}

}  // namespace

double cpu_us(clockid_t clock) {
  timespec used{};
  clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) * 1e6 + static_cast<double>(used.tv_nsec) / 1e3;
}

void obey(Orders& orders, const Place& place, const NamedWay& named) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setenv("LOCAL_RANK", std::to_string(place.rank()).c_str(), 1);
  {
    const std::unique_ptr<Way> way = named.make(place);
    while (true) {
      while (sem_wait(&orders.begin) != 0) {
      }
      switch (orders.what) {
        case Orders::What::Prepare:
          way->prepare(orders.bytes);
          break;
        case Orders::What::Transfer:
          start_apart(place.sends);
          orders.begun_cpu_us = cpu_us(CLOCK_PROCESS_CPUTIME_ID);
          orders.median_us = transfer(*way, place.sends, orders.count);
          break;
        case Orders::What::Fill:
          if (place.sends) fill(way->tensor(), orders.bytes, orders.count);
          break;
        case Orders::What::Compare:
          orders.is_right = place.sends || is_filled(way->tensor(), orders.bytes, orders.count);
          break;
        case Orders::What::Leave:
          break;
      }
      sem_post(&orders.done);
      if (orders.what == Orders::What::Leave) break;
    }
  }
  _exit(0);
}

}  // namespace rdmacoll::bench
