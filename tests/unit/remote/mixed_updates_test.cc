// Updates of one word by all who can make them: its owner, processes of its host over shared
// memory, and others that ask it over verbs. The devices are emulated, the rest is real.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/transport/shm/transport.h"
#include "csrc/transport/verbs/transport.h"
#include "tests/fake_verbs/network.h"
#include "tests/unit/remote/processes.h"

namespace rdmacoll::mixed_updates_test {
namespace {

constexpr uint32_t kOwnersHost = 2;  // so many of the processes, and as many of another one
constexpr uint32_t kProcesses = 2 * kOwnersHost;

template <typename Opened>
void add(OwnedTransports& all, Result<std::unique_ptr<Opened>> opened) {
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  all.push_back(opened.take());
}

OwnedTransports shm_and_verbs(const std::string& host, const Clock& clock) {
  Config config;
  config.host_id = host;
  config.log_level = LogLevel::Error;
  OwnedTransports all;
  add(all, ShmTransport::open(config, clock, ThisProcess::make().take()));
  add(all,
      VerbsTransport::open(fake::FakeNetwork::table(), config, clock, ThisProcess::make().take()));
  return all;
}

void run_on_two_hosts(const std::function<void(RemoteProcess&)>& body) {
  fake::NetworkSpec spec;
  spec.seed = 1;
  spec.devices = {fake::roce_device(0), fake::roce_device(1)};
  const fake::FakeNetwork network(spec);
  std::barrier<> all(kProcesses);
  std::barrier<> ready(kProcesses);
  std::barrier<> done(kProcesses);
  run_over(
      kProcesses,
      [](uint32_t rank) {
        const std::string host = rank < kOwnersHost ? "a" : "b";
        return std::make_unique<RankOver>(
            host, [host](const Clock& clock) { return shm_and_verbs(host, clock); });
      },
      [&](RankOver& rank, Communicator& communicator) {
        auto process = std::make_unique<RemoteProcess>(rank, communicator, all);
        ready.arrive_and_wait();
        body(*process);
        done.arrive_and_wait();
      });
}

// The owner updates the word all the while that others do.
TEST(MixedUpdates, ExcludeEachOther) {
  constexpr uint64_t kAdds = 300;
  std::atomic<uint32_t> at_work{kProcesses - 1};
  std::mutex mutex;
  std::vector<uint64_t> numbers;
  run_on_two_hosts([&](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto memory = p.memory(4096, Others::Write);
      std::byte* const word = memory->data() + 8;
      p.expose({.name = "counter", .bytes = 8, .is_writable = true}, memory, 8);
      uint64_t own = 0;
      for (; at_work > 0; ++own) Update::add(1).apply_to(word);
      EXPECT_EQ(Update::add(0).apply_to(word), own + (kProcesses - 1) * kAdds);
      return;
    }
    const OpenedPtr counter = p.open("counter", 0);
    const bool is_beside = static_cast<uint32_t>(p.rank()) < kOwnersHost;
    EXPECT_EQ(counter->session->link().transport->info().name, is_beside ? "shm" : "verbs");
    std::vector<WorkPtr> works;
    std::vector<std::shared_ptr<uint64_t>> before;
    for (uint64_t i = 0; i < kAdds; ++i) {
      before.push_back(std::make_shared<uint64_t>(0));
      works.push_back(p.remote().update(counter, 0, Update::add(1), before.back(), kSoonMs));
    }
    for (const WorkPtr& work : works) p.good(work);
    --at_work;
    const std::lock_guard lock(mutex);
    for (const auto& number : before) numbers.push_back(*number);
  });
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(numbers.size(), (kProcesses - 1) * kAdds);
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
}

// What it guards is read and written back: two who held it would lose one of their sums.
TEST(MixedUpdates, ALockIsHeldByOne) {
  constexpr uint64_t kRounds = 20;
  run_on_two_hosts([&](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto memory = p.memory(4096, Others::Write);
      p.expose({.name = "lock", .bytes = 16, .is_writable = true}, memory, 0);
      p.meet();
      EXPECT_EQ(*reinterpret_cast<const uint64_t*>(memory->data() + 8), kRounds * (kProcesses - 1));
      return;
    }
    const OpenedPtr lock = p.open("lock", 0);
    const auto mine = static_cast<uint64_t>(p.rank());
    const auto before = std::make_shared<uint64_t>(0);
    const auto swap = [&](uint64_t expected, uint64_t desired) {
      const Update update = Update::compare_swap(expected, desired);
      p.good(p.remote().update(lock, 0, update, before, kSoonMs));
      return *before == expected;
    };
    for (uint64_t round = 0; round < kRounds; ++round) {
      while (!swap(0, mine)) std::this_thread::yield();
      uint64_t sum = 0;
      p.good(p.remote().read(lock, 8, &sum, 8, kSoonMs));
      ++sum;
      p.good(p.remote().write(lock, 8, &sum, 8, 0, kSoonMs));
      p.good(p.remote().fence(lock, kSoonMs));
      EXPECT_TRUE(swap(mine, 0));
    }
    p.meet();
  });
}

}  // namespace
}  // namespace rdmacoll::mixed_updates_test
