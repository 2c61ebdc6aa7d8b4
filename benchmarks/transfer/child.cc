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

constexpr double kSettleUs = 10'000;

double now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

// For a turn the threads of both programs are bound to a core each, those of gRPC to none. On a
// machine with other work the system may leave two that it has woken together on one core for ever.
class OnOwnCore {
 public:
  explicit OnOwnCore(bool first) {
    sched_getaffinity(0, sizeof allowed_, &allowed_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed_)) continue;
      if (first && CPU_COUNT(&one) > 0) break;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OnOwnCore() { sched_setaffinity(0, sizeof allowed_, &allowed_); }
  OnOwnCore(const OnOwnCore&) = delete;
  OnOwnCore& operator=(const OnOwnCore&) = delete;

 private:
  cpu_set_t allowed_;
};

// Both begin together, and awake: the CPU seconds of the first would count its wait for the second.
void begin_together(std::atomic<uint64_t>& starts) {
  for (const double until = now_us() + kSettleUs; now_us() < until;) {
  }
  const uint64_t both = starts.fetch_add(1) / 2 * 2 + 2;
  while (starts.load() < both) sched_yield();
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

void obey(Orders& orders, std::atomic<uint64_t>& starts, const Place& place,
          const NamedWay& named) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  enter(place.host);
  setenv("LOCAL_RANK", std::to_string(place.rank()).c_str(), 1);
  std::unique_ptr<Way> way = named.make(place);
  while (true) {
    while (sem_wait(&orders.begin) != 0) {
    }
    switch (orders.what) {
      case Orders::What::Prepare:
        way->prepare(orders.bytes);
        break;
      case Orders::What::Transfer: {
        const OnOwnCore bound(place.sends);
        begin_together(starts);
        orders.begun_cpu_us = cpu_us(CLOCK_PROCESS_CPUTIME_ID);
        orders.median_us = transfer(*way, place.sends, orders.count);
        break;
      }
      case Orders::What::Fill:
        if (place.sends) fill(way->tensor(), orders.bytes, orders.count);
        break;
      case Orders::What::Compare:
        orders.is_right = place.sends || is_filled(way->tensor(), orders.bytes, orders.count);
        break;
      case Orders::What::Leave:
        way.reset();
        sem_post(&orders.done);
        _exit(0);
    }
    sem_post(&orders.done);
  }
}

}  // namespace rdmacoll::bench
