// Rank. Floor: tests. Thread: the process's main one, and one per group for a round.
#include "tests/soak/rank.h"

#include <malloc.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <thread>

#include "csrc/engine/endpoint.h"
#include "tests/processes/holdings.h"
#include "tests/sim/script.h"
#include "tests/soak/subgroup.h"

namespace rdmacoll::soak {
namespace {

constexpr int64_t kTimeoutMs = 60'000;
constexpr int kOperations = 30;  // of a group
constexpr size_t kInFlight = 6;
constexpr size_t kScale = 20;  // up to 240 KB a block
constexpr int kWarmRounds = 5;
constexpr int64_t kSignalEveryUs = 3000;
// Some 1 MB of its own was seen, whether after 500 groups or 4,600, and 9 MB of the heap's pages,
// each of which is touched at some time and stays.
constexpr int64_t kOwnGrowthMaxKb = 4 << 10;
constexpr int64_t kSharedGrowthMaxKb = 16 << 10;
constexpr const char* kAlgorithms[] = {"auto", "ring", "tree", "one_shot", "two_shot", "direct"};

std::atomic<uint64_t> signals{0};

void count_signal(int) { signals.fetch_add(1, std::memory_order_relaxed); }

// System calls are interrupted, and not restarted.
void send_signals() {
  struct sigaction action{};
  action.sa_handler = count_signal;
  sigaction(SIGALRM, &action, nullptr);
  const timeval every{0, kSignalEveryUs};
  const itimerval timer{every, every};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// What this process has in memory: of its own, and of what it shares with others.
struct Resident {
  int64_t own_kb = 0;
  int64_t shared_kb = 0;

  static Resident now() {
    ::malloc_trim(0);  // what the allocator only keeps is nobody's
    Resident resident;
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      if (word == "RssAnon:") status >> resident.own_kb;
      if (word == "RssShmem:") status >> resident.shared_kb;
    }
    return resident;
  }
  Resident operator-(const Resident& before) const {
    return {own_kb - before.own_kb, shared_kb - before.shared_kb};
  }
  std::string text() const {
    return std::to_string(own_kb) + " KB of its own, " + std::to_string(shared_kb) + " KB shared";
  }
};

class Process {
 public:
  Process(const Wanted& wanted, int rank, Meeting& meeting)
      : wanted_(wanted), rank_(rank), meeting_(meeting) {}

  [[noreturn]] void run() {
    const Holdings before;
    open();
    send_signals();
    int rounds = 0;
    const SteadyClock clock;
    const Deadline end = Deadline::after_ms(clock, wanted_.seconds * 1000);
    Holdings warm;
    Resident warm_memory;
    for (; agree(!end.passed(clock)); ++rounds) {
      one_round(wanted_.seed * 1'000'003 + static_cast<uint64_t>(rounds));
      if (rounds == kWarmRounds) warm = Holdings(), warm_memory = Resident::now();
    }
    if (rounds <= kWarmRounds) wrong("too few rounds to judge by");
    if (const std::string left = not_as(warm); !left.empty()) wrong("groups leave " + left);
    const Resident growth = Resident::now() - warm_memory;
    if (growth.own_kb > kOwnGrowthMaxKb || growth.shared_kb > kSharedGrowthMaxKb) {
      wrong("memory grew: " + growth.text());
    }
    if (all_->heap()->stats().allocated_bytes != 0) wrong("something is left in the heap");
    all_.reset();
    endpoint_.reset();
    if (const std::string left = not_as(before); !left.empty())
      wrong("the endpoint leaves " + left);
    if (rank_ == 0) {
      std::printf(
          "%d ranks, seed %llu: %d rounds, %d groups, %llu operations, %d forks, %llu "
          "signals; memory of rank 0 after %d rounds: + %s\n",
          wanted_.ranks, static_cast<unsigned long long>(wanted_.seed), rounds, groups_,
          static_cast<unsigned long long>(operations_.load()), forks_,
          static_cast<unsigned long long>(signals.load()), kWarmRounds, growth.text().c_str());
      std::fflush(stdout);
    }
    _exit(0);
  }

 private:
  [[noreturn]] void wrong(const std::string& text) const {
    std::fprintf(stderr, "rank %d, seed %llu: %s\n", rank_,
                 static_cast<unsigned long long>(wanted_.seed), text.c_str());
    _exit(1);
  }
  void expect(const Status& status) const {
    if (!status.ok()) wrong(status.message());
  }

  void open() {
    auto config = Config::from_environment();
    expect(config.status());
    config.value().zero_copy_local_bytes = config.value().zero_copy_remote_bytes = 4096;
    auto endpoint = Endpoint::open(config.value());
    expect(endpoint.status());
    endpoint_ = endpoint.take();
    MeetingBootstrap bootstrap(meeting_, rank_, wanted_.ranks);
    auto made = endpoint_->create_communicator(rank_, wanted_.ranks, bootstrap, kTimeoutMs);
    expect(made.status());
    all_ = made.take();
  }

  // Rank 0 has the word.
  bool agree(bool mine) {
    auto work = all_->broadcast(&mine, sizeof(mine), 0);
    expect(work.ok() ? all_->wait(*work.value(), -1, {}) : work.status());
    return mine;
  }

  // All draw the same numbers.
  void one_round(uint64_t seed) {
    std::mt19937_64 random(seed);
    struct Group {
      std::shared_ptr<Communicator> communicator;
      uint64_t seed;
    };
    std::vector<Group> mine;
    for (uint64_t groups = 1 + random() % 3; groups > 0; --groups) {
      std::vector<int> members(static_cast<size_t>(wanted_.ranks));
      std::iota(members.begin(), members.end(), 0);
      std::shuffle(members.begin(), members.end(), random);
      members.resize(2 + random() % (members.size() - 1));
      const std::string algorithm = kAlgorithms[random() % std::size(kAlgorithms)];
      const uint64_t group_seed = random();
      auto communicator = make_group(members, algorithm);
      if (communicator != nullptr) mine.push_back({std::move(communicator), group_seed});
    }
    std::vector<std::thread> threads;
    for (Group& group : mine) {
      threads.emplace_back([this, &group] { work_in(*group.communicator, group.seed); });
    }
    if (random() % 4 == 0) fork_once();
    for (std::thread& thread : threads) thread.join();
    std::shuffle(mine.begin(), mine.end(), random);
  }

  // nullptr: this rank is no member.
  std::shared_ptr<Communicator> make_group(const std::vector<int>& members,
                                           const std::string& algorithm) {
    ++groups_;
    SubgroupBootstrap bootstrap(*all_, members);
    const auto place = std::find(members.begin(), members.end(), rank_);
    if (place == members.end()) {
      bootstrap.decline("");
      return nullptr;
    }
    auto made = endpoint_->create_communicator(static_cast<int>(place - members.begin()),
                                               static_cast<int>(members.size()), bootstrap,
                                               kTimeoutMs, algorithm);
    expect(made.status());
    return made.take();
  }

  void work_in(Communicator& c, uint64_t seed) {
    std::mt19937_64 random(seed);
    // This rank's buffers may lie in its heap; the others' are only there to know the results.
    std::vector<Heap*> heaps(static_cast<size_t>(c.size()), nullptr);
    heaps[static_cast<size_t>(c.rank())] = c.heap();
    Script script(random, heaps, kOperations, kScale);
    std::deque<std::pair<int, std::vector<WorkPtr>>> in_flight;
    const auto end_one = [&] {
      const auto& [i, works] = in_flight.front();
      for (const WorkPtr& work : works) expect(c.wait(*work, -1, {}));
      script.end(i, c.rank());
      const std::string problem = script.check(i, c.rank());
      if (!problem.empty()) wrong(problem);
      in_flight.pop_front();
    };
    for (int i = 0; i < kOperations; ++i) {
      in_flight.emplace_back(i, script.start_alone(i, c));
      if (in_flight.back().second.empty()) wrong(c.failure().message());
      while (in_flight.size() > random() % kInFlight) end_one();
      operations_.fetch_add(1, std::memory_order_relaxed);
    }
    while (!in_flight.empty()) end_one();
  }

  // As a DataLoader does it, in the middle of operations.
  void fork_once() {
    ++forks_;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (child < 0) wrong("fork failed");
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) wrong("a forked child did not end well");
  }

  const Wanted wanted_;
  const int rank_;
  Meeting& meeting_;
  std::shared_ptr<Endpoint> endpoint_;
  std::shared_ptr<Communicator> all_;
  int groups_ = 0, forks_ = 0;
  std::atomic<uint64_t> operations_{0};
};

}  // namespace

void run_rank(const Wanted& wanted, int rank, Meeting& meeting) {
  Process(wanted, rank, meeting).run();
}

}  // namespace rdmacoll::soak
