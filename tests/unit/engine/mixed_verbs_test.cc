// Groups in which each pair of ranks has a way of its own: shm inside a host, verbs between hosts
// that have a device, tcp to those that have none. The devices are emulated, the rest is real.
#include <barrier>
#include <deque>
#include <random>

#include "csrc/transport/shm/transport.h"
#include "csrc/transport/tcp/transport.h"
#include "csrc/transport/verbs/transport.h"
#include "tests/fake_verbs/network.h"
#include "tests/sim/script.h"
#include "tests/unit/engine/in_heap.h"
#include "tests/unit/engine/ranks_over.h"

namespace rdmacoll::mixed_verbs_test {
namespace {

struct Place {
  std::string host;
  bool has_device = true;
};

const Place kA{"a"}, kB{"b"}, kC{"c", false}, kD{"d", false};
const std::vector<std::vector<Place>> kJobs = {
    {kA, kB, kC}, {kA, kA, kB, kC}, {kC, kA, kB}, {kA, kC, kB, kC}, {kC, kA, kD, kB, kA}};

std::string way(const Place& one, const Place& other) {
  if (one.host == other.host) return "shm";
  return one.has_device && other.has_device ? "verbs" : "tcp";
}

template <typename Opened>
void add(OwnedTransports& all, Result<std::unique_ptr<Opened>> opened) {
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  all.push_back(opened.take());
}

OwnedTransports open_at(const Place& place, uint32_t rank, const Clock& clock) {
  Config config;
  config.host_id = place.host;
  config.log_level = LogLevel::Error;
  config.place.local_rank = rank;  // spreads them over the devices
  config.settings.set("RDMACOLL_SOCKET_IFNAME", "=lo");
  OwnedTransports all;
  add(all, ShmTransport::open(config, clock, ThisProcess::make().take()));
  if (place.has_device) {
    add(all, VerbsTransport::open(fake::FakeNetwork::table(), config, clock,
                                  ThisProcess::make().take()));
  }
  add(all, TcpTransport::open(config, clock, ThisProcess::make().take()));
  return all;
}

using Body = std::function<void(RankOver&, Communicator&)>;

// Every rank has met the others in the way that it must.
void run_job(const std::vector<Place>& job, uint64_t seed, const Body& body) {
  fake::NetworkSpec spec;
  spec.seed = seed;
  spec.devices = {fake::roce_device(0), fake::roce_device(1)};
  fake::FakeNetwork network(spec);
  const auto make = [&](uint32_t r) {
    return std::make_unique<RankOver>(
        job[r].host, [&](const Clock& clock) { return open_at(job[r], r, clock); });
  };
  run_over(static_cast<uint32_t>(job.size()), make, [&](RankOver& rank, Communicator& c) {
    const Place& here = job[static_cast<size_t>(c.rank())];
    EXPECT_EQ(c.paths().size(), job.size() - 1);
    for (const PeerPath& path : c.paths()) {
      EXPECT_EQ(path.transport, way(here, job[static_cast<size_t>(path.rank)]));
    }
    body(rank, c);
  });
  EXPECT_EQ(network.leaks(), "");
}

// Random collectives and messages, some in flight at once, some of them in the heap.
void play(Communicator& c, uint64_t seed, int operations, size_t scale) {
  constexpr size_t kInFlight = 4;
  std::mt19937_64 random(seed);
  std::vector<Heap*> heaps(static_cast<size_t>(c.size()), nullptr);
  heaps[static_cast<size_t>(c.rank())] = c.heap();
  Script script(random, heaps, operations, scale);
  std::deque<std::pair<int, std::vector<WorkPtr>>> in_flight;
  const auto end_one = [&] {
    const auto& [i, works] = in_flight.front();
    for (const WorkPtr& work : works) finish(c, work);
    script.end(i, c.rank());
    EXPECT_EQ(script.check(i, c.rank()), "");
    in_flight.pop_front();
  };
  for (int i = 0; i < operations && !::testing::Test::HasFailure(); ++i) {
    in_flight.emplace_back(i, script.start_alone(i, c));
    EXPECT_FALSE(in_flight.back().second.empty()) << c.failure().message();
    while (in_flight.size() > random() % kInFlight) end_one();
  }
  while (!in_flight.empty()) end_one();
  for (int i = 0; i < operations; ++i) EXPECT_EQ(script.check_given_back(i, c.rank()), "");
}

TEST(MixedJobs, EveryOperationIsExact) {
  for (size_t job = 0; job < kJobs.size(); ++job) {
    SCOPED_TRACE(job);
    run_job(kJobs[job], job, [&](RankOver&, Communicator& c) {
      play(c, job, 120, 1);
      play(c, job, 20, 40);
      finish(c, c.barrier());
    });
  }
}

constexpr int64_t kLargeCount = 4 << 20;  // 16 MiB

// Many slots of each transport, and results written straight into the heap.
TEST(MixedJobs, LargeBuffersAreExact) {
  const Body body = [](RankOver&, Communicator& c) {
    const auto mine = static_cast<float>(c.rank() + 1);
    const auto expected = static_cast<float>(c.size() * (c.size() + 1) / 2);
    for (Heap* heap : {static_cast<Heap*>(nullptr), c.heap()}) {
      heap_of_this_rank = heap;
      HeapVector<float> data(kLargeCount, mine);
      finish(c, c.all_reduce(data.data(), data.data(), kLargeCount, DType::Float32, ReduceOp::Sum));
      EXPECT_EQ(std::count(data.begin(), data.end(), expected), kLargeCount);
    }
    heap_of_this_rank = nullptr;
  };
  run_job(kJobs[1], 1, body);
}

// Not for ThreadSanitizer: a get over verbs counts as done when its peer says goodbye, and may
// still land when its place is used again.
#ifndef __SANITIZE_THREAD__
// Whoever it is, and whatever joins it to the others: all of them hear of it, and go on together.
TEST(MixedJobs, ThoseThatAreLeftGoOn) {
  const std::vector<Place>& job = kJobs[1];
  for (int leaver = 0; leaver < static_cast<int>(job.size()); ++leaver) {
    SCOPED_TRACE(leaver);
    std::barrier met(static_cast<std::ptrdiff_t>(job.size()));
    run_job(job, 1, [&](RankOver& rank, Communicator& c) {
      finish(c, c.barrier());
      met.arrive_and_wait();  // nobody is in that one any more
      if (c.rank() == leaver) {
        rank.leaves = true;
        return;
      }
      auto started = c.barrier();
      ASSERT_TRUE(started.ok());
      const Status failed = c.wait(*started.value(), -1, {});
      EXPECT_EQ(failed.code(), StatusCode::PeerFailed);
      EXPECT_NE(failed.message().find("rank " + std::to_string(leaver)), std::string::npos)
          << failed.message();
      auto smaller = c.shrink({}, kTestTimeoutMs, {});
      ASSERT_TRUE(smaller.ok()) << smaller.status().message();
      play(*smaller.value().communicator, 1, 40, 1);
      finish(*smaller.value().communicator, smaller.value().communicator->barrier());
    });
  }
}
#endif

}  // namespace
}  // namespace rdmacoll::mixed_verbs_test
