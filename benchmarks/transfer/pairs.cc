// Floor: benchmarks. Thread: the parent's.
#include "benchmarks/transfer/pairs.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "benchmarks/transfer/child.h"
#include "benchmarks/transfer/options.h"
#include "benchmarks/transfer/ratio.h"
#include "csrc/base/clock.h"

namespace rdmacoll::bench {
namespace {

constexpr double kTurnUs = 50'000;
constexpr int kMostSends = 4000;
constexpr int kSendsToLearn = 20;
constexpr int64_t kStepNs = 120'000'000'000;  // for whatever a pair does in one turn
constexpr uint64_t kRoomForFlags = 4096;
constexpr int64_t kLookNs = 100'000'000;  // whether a child has ended

template <typename T>
T* shared(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) give_up("there is no memory to share");
  return new (memory) T();
}

// The parent's hold on two children.
class Pair {
 public:
  Pair(const NamedWay& named, const Options& options) : name_(named.name) {
    auto* meeting = shared<Meeting>(sizeof(Meeting));
    auto* starts = shared<std::atomic<uint64_t>>(sizeof(std::atomic<uint64_t>));
    auto* memory = shared<std::byte>(kMostBytes + kRoomForFlags);
    for (const bool sends : {true, false}) {
      Child& child = children_[sends ? 0 : 1];
      child.orders = shared<Orders>(sizeof(Orders));
      sem_init(&child.orders->begin, 1, 0);
      sem_init(&child.orders->done, 1, 0);
      child.pid = fork();
      if (child.pid == 0) {
        obey(*child.orders, *starts,
             {.sends = sends,
              .reads = options.reads,
              .meeting = meeting,
              .shared = memory,
              .host = options.hosts[sends ? 0 : 1]},
             named);
      }
    }
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() {
    for (const Child& child : children_) {
      kill(child.pid, SIGKILL);  // those who have left are at their end already
      waitpid(child.pid, nullptr, 0);
    }
  }

  const char* name() const { return name_; }

  // Both do it; false: one has ended, or is not done in time.
  bool order(Orders::What what, uint64_t bytes = 0, int count = 0) {
    for (Child& child : children_) {
      child.orders->what = what;
      child.orders->bytes = bytes;
      child.orders->count = count;
      sem_post(&child.orders->begin);
    }
    const int64_t end_ns = SteadyClock().now_ns() + kStepNs;
    return std::ranges::all_of(children_, [&](Child& child) { return await(child, end_ns); });
  }
  double sender_us() const { return children_[0].orders->median_us; }
  bool is_right() const { return children_[1].orders->is_right; }

  // Of both processes since the last transfers began; after these have ended.
  double transfers_cpu_us() const {
    double sum = 0;
    for (const Child& child : children_) {
      clockid_t clock;
      if (clock_getcpuclockid(child.pid, &clock) != 0) continue;
      sum += cpu_us(clock) - child.orders->begun_cpu_us;
    }
    return sum;
  }

 private:
  struct Child {
    pid_t pid = 0;
    Orders* orders = nullptr;
  };

  bool await(Child& child, int64_t end_ns) const {
    while (SteadyClock().now_ns() < end_ns) {
      timespec until{};
      clock_gettime(CLOCK_REALTIME, &until);
      until.tv_nsec += kLookNs;
      until.tv_sec += until.tv_nsec / 1'000'000'000;
      until.tv_nsec %= 1'000'000'000;
      if (sem_timedwait(&child.orders->done, &until) == 0) return true;
      siginfo_t info{};
      const auto pid = static_cast<id_t>(child.pid);
      if (waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
        if (sem_trywait(&child.orders->done) == 0) return true;  // it has left as it was told to
        std::fprintf(stderr, "a process of '%s' has ended\n", name_);
        return false;
      }
    }
    std::fprintf(stderr, "'%s' was not done in time\n", name_);
    return false;
  }

  const char* const name_;
  std::array<Child, 2> children_;
};

struct Turns {
  int sends = 1;  // of a turn
  std::vector<double> us;
  std::vector<double> cpu_us;
};

bool check(Pair& pair, uint64_t bytes, int seed) {
  if (!pair.order(Orders::What::Fill, bytes, seed) || !pair.order(Orders::What::Transfer, bytes, 1))
    return false;
  if (!pair.order(Orders::What::Compare, bytes, seed)) return false;
  if (!pair.is_right()) std::fprintf(stderr, "'%s' transfers something else\n", pair.name());
  return pair.is_right();
}

// How many sends fit into a turn.
bool warm_up(Pair& pair, Turns& turns) {
  for (const int count : {1, 2, kSendsToLearn}) {
    if (!pair.order(Orders::What::Transfer, 0, count)) return false;
    const double fit = kTurnUs / std::max(pair.sender_us(), 0.1);
    turns.sends = std::clamp(static_cast<int>(fit), 1, kMostSends);
    if (turns.sends < kSendsToLearn) return true;
  }
  return true;
}

bool turn(Pair& pair, Turns& turns) {
  if (!pair.order(Orders::What::Transfer, 0, 1 + turns.sends)) return false;
  turns.us.push_back(pair.sender_us());
  turns.cpu_us.push_back(pair.transfers_cpu_us() / (1 + turns.sends));
  return true;
}

using Pairs = std::vector<std::unique_ptr<Pair>>;

bool measure(const Pairs& pairs, uint64_t bytes, int rounds, std::vector<Turns>& turns) {
  for (size_t i = 0; i < pairs.size(); ++i) {
    Pair& pair = *pairs[i];
    if (!pair.order(Orders::What::Prepare, bytes) || !warm_up(pair, turns[i])) return false;
    if (!check(pair, bytes, 1)) return false;
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < pairs.size(); ++i) {
      const size_t next = (static_cast<size_t>(round) + i) % pairs.size();
      if (!turn(*pairs[next], turns[next])) return false;
    }
  }
  return std::ranges::all_of(pairs, [&](const auto& pair) { return check(*pair, bytes, 2); });
}

void print(const Pairs& pairs, uint64_t bytes, const std::vector<Turns>& turns) {
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Ratio slower = ratio(turns[i].us, turns[0].us);
    const Ratio cpu = ratio(turns[i].cpu_us, turns[0].cpu_us);
    const double used_us = middle(turns[i].cpu_us);
    std::printf("%10s  %-22s %11.2f %11.2f [%.3g, %.3g] %*s%11.2f %9.3f %9.2f\n",
                i == 0 ? std::to_string(bytes).c_str() : "", pairs[i]->name(), middle(turns[i].us),
                slower.median, slower.low, slower.high, 1, "", used_us,
                used_us * 1e3 / static_cast<double>(bytes), cpu.median);
  }
  std::fflush(stdout);
}

}  // namespace

int compare(const std::vector<NamedWay>& ways, int argc, char** argv) {
  const auto options = Options::of(argc, argv);
  if (!options) return 2;
  Pairs pairs;
  for (const NamedWay& named : ways) {
    if (named.is_for_one_host && !options->is_within_a_host()) continue;
    pairs.push_back(std::make_unique<Pair>(named, *options));
  }
  std::array<double, 3> load{};
  getloadavg(load.data(), static_cast<int>(load.size()));
  std::printf(
      "a pair of processes for each way%s; load %.1f %.1f %.1f; %d rounds; bytes checked%s\n",
      options->is_within_a_host() ? "" : ", between two hosts", load[0], load[1], load[2],
      options->rounds, options->reads ? "; the receiver reads them before it answers" : "");
  std::printf("%10s  %-22s %11s %11s %-15s%11s %9s %9s\n", "bytes", "way", "us", "times ours",
              "95 %", "CPU us", "CPU s/GB", "times");
  bool well = true;
  for (const uint64_t bytes : options->sizes_bytes) {
    std::vector<Turns> turns(pairs.size());
    well = well && measure(pairs, bytes, options->rounds, turns);
    if (well) print(pairs, bytes, turns);
  }
  for (const auto& pair : pairs) well = well && pair->order(Orders::What::Leave);
  return well ? 0 : 1;
}

}  // namespace rdmacoll::bench
