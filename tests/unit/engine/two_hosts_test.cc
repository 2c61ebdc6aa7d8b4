// Groups whose ranks are reached over two transports at once. The second one is shm in disguise: it
// has another name, and maps nothing, so the engine puts its messages as over a network.
#include "csrc/transport/shm/transport.h"
#include "tests/unit/engine/in_heap.h"
#include "tests/unit/engine/ranks_over.h"

namespace rdmacoll::two_hosts_test {
namespace {

class Network final : public Transport {
 public:
  explicit Network(std::unique_ptr<ShmTransport> shm) : shm_(std::move(shm)) {
    set_info(
        {.name = "network", .address = shm_->info().address, .set_up_fd = shm_->info().set_up_fd});
  }
  uint64_t puts() const { return puts_.load(); }
  uint64_t puts_from_sources() const { return puts_from_sources_.load(); }

  Posted put(PeerId peer, uint8_t channel, LocalSlice source, RemoteSlice destination,
             Ticket* ticket) override {
    const auto memory = known_.find(source.region);
    EXPECT_TRUE(memory != known_.end() && source.data >= memory->second.base &&
                memory->second.holds(source.data - memory->second.base, source.bytes));
    puts_.fetch_add(1);
    const bool in_heap =
        memory->second.id >= Heap::kFirstExtent && memory->second.id < Heap::kRegions;
    puts_from_sources_.fetch_add(in_heap);
    const Posted posted = shm_->put(peer, channel, source, destination, ticket);
    if (!holds_puts || !in_heap || posted != Posted::Done) return posted;
    *ticket = Ticket(let_go_, 1);
    return Posted::Pending;
  }
  // Whether puts from the heap are under way until let_go().
  bool holds_puts = false;
  void let_go() { let_go_.store(1); }
  // Extents of the heap are known here alone: nothing is put to them, as they have no key.
  Result<std::string> register_region(RegionId region, const RegionMemory& memory) override {
    if (memory.access == Access::Full) {
      known_[region] = {region, memory.base(), memory.bytes};
      return shm_->register_region(region, memory);
    }
    if (refuses_sources) return Status(StatusCode::Unsupported, "too much locked memory");
    known_[region] = {region, memory.base(), memory.bytes};
    return std::string();
  }
  bool refuses_sources = false;

  Result<PeerId> connect(const std::string& address, Deadline deadline) override {
    Result<PeerId> peer = shm_->connect(address, deadline);
    if (peer.ok()) met_.store(std::max(met_.load(), peer.value() + 1));
    return peer;
  }
  bool called_by(const std::string& address) const override { return shm_->called_by(address); }
  void serve(SetUpReport& report) override { shm_->serve(report); }
  Status offer_region(PeerId peer, RegionId id, uint64_t note) override {
    return shm_->offer_region(peer, id, note);
  }
  Result<Region> open_region(PeerId peer, std::string_view key, Deadline deadline) override {
    Result<Region> opened = shm_->open_region(peer, key, deadline);
    if (opened.ok()) opened.value().base = nullptr;
    return opened;
  }
  void close_region(PeerId peer, RegionId region, std::string_view key) override {
    shm_->close_region(peer, region, key);
  }
  void cut_off_region(RegionId region) override { shm_->cut_off_region(region); }
  void release_region(RegionId region, Release how) override { shm_->release_region(region, how); }
  bool is_reusable(RegionId region) override { return shm_->is_reusable(region); }
  Posted get(PeerId peer, uint8_t channel, RemoteSlice source, LocalSlice destination,
             Ticket* ticket) override {
    return shm_->get(peer, channel, source, destination, ticket);
  }
  Posted signal(PeerId peer, uint8_t channel, RemoteSlice line, uint64_t counter,
                const Header& header) override {
    return shm_->signal(peer, channel, line, counter, header);
  }
  void poll() override {
    shm_->poll();
    for (PeerId peer = 0; peer < met_.load(); ++peer) {
      if (Status end = shm_->peer_status(peer); !end.ok()) note_end(peer, std::move(end));
    }
  }
  int arm() override { return shm_->arm(); }
  void disarm() override { shm_->disarm(); }
  Status fence(PeerId peer, Deadline deadline) override { return shm_->fence(peer, deadline); }

 private:
  const std::unique_ptr<ShmTransport> shm_;
  std::map<RegionId, Region> known_;
  std::atomic<PeerId> met_{0};
  std::atomic<uint64_t> puts_{0};
  std::atomic<uint64_t> puts_from_sources_{0};
  std::atomic<uint64_t> let_go_{0};
};

std::unique_ptr<ShmTransport> open_on(const std::string& host, const Clock& clock) {
  Config config;
  config.host_id = host;
  return ShmTransport::open(config, clock, ThisProcess::make().take()).take();
}

using Body = std::function<void(RankOver&, Communicator&)>;

Network& network_of(RankOver& rank) { return static_cast<Network&>(rank.transport(1)); }

// One rank per entry, on the host of that name. `prepare` sees its network before it joins.
void run_on(
    const std::vector<std::string>& hosts, const Body& body,
    const std::function<void(Network&)>& prepare = [](Network&) {}) {
  const auto make = [&](uint32_t r) {
    auto rank = std::make_unique<RankOver>(hosts[r], [&](const Clock& clock) {
      OwnedTransports opened;
      opened.push_back(open_on(hosts[r], clock));
      opened.push_back(std::make_unique<Network>(open_on("the network", clock)));
      return opened;
    });
    prepare(network_of(*rank));
    return rank;
  };
  run_over(static_cast<uint32_t>(hosts.size()), make, body);
}

void sum(Communicator& c, uint64_t count) {
  HeapVector<float> data(count, static_cast<float>(c.rank() + 1));
  finish(c, c.all_reduce(data.data(), data.data(), count, DType::Float32, ReduceOp::Sum));
  const float expected = static_cast<float>(c.size() * (c.size() + 1) / 2);
  for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(data[i], expected) << i;
}

TEST(TwoHosts, EveryPairHasItsOwnWay) {
  const std::vector<std::string> hosts = {"a", "b", "a", "b", "c"};
  run_on(hosts, [&](RankOver& rank, Communicator& c) {
    const std::string& here = hosts[static_cast<size_t>(c.rank())];
    const std::vector<PeerPath> paths = c.paths();
    ASSERT_EQ(paths.size(), 4u);
    for (const PeerPath& path : paths) {
      const std::string& there = hosts[static_cast<size_t>(path.rank)];
      EXPECT_NE(path.rank, c.rank());
      EXPECT_EQ(path.transport, here == there ? "shm" : "network");
      EXPECT_EQ(path.reason, here == there ? "same host" : "on host " + there);
    }
    for (const uint64_t count : {1u, 100u, 5000u, 300'000u}) sum(c, count);
    EXPECT_GT(network_of(rank).puts(), 0u);
    finish(c, c.barrier());
  });
}

// By the island of each rank; numbered by their lowest ranks.
void expect_islands(const Communicator& c, const std::vector<uint16_t>& expected) {
  std::vector<uint16_t> islands;
  for (uint32_t r = 0; r < c.islands().world(); ++r) islands.push_back(c.islands().of(r));
  EXPECT_EQ(islands, expected);
}

TEST(TwoHosts, HostsAreIslands) {
  run_on({"a", "b", "a", "b", "c"},
         [](RankOver&, Communicator& c) { expect_islands(c, {0, 1, 0, 1, 2}); });
  run_on({"a", "a"}, [](RankOver&, Communicator& c) { expect_islands(c, {0, 0}); });
  run_on({"a", "b"}, [](RankOver&, Communicator& c) { expect_islands(c, {0, 1}); });
}

// Ranks of one host that have no shared memory open.
TEST(TwoHosts, OverANetworkAloneNobodySharesAnIsland) {
  const auto make = [](uint32_t) {
    return std::make_unique<RankOver>("a", [](const Clock& clock) {
      OwnedTransports opened;
      opened.push_back(std::make_unique<Network>(open_on("the network", clock)));
      return opened;
    });
  };
  run_over(3, make, [](RankOver&, Communicator& c) {
    expect_islands(c, {0, 1, 2});
    sum(c, 300'000);
  });
}

// Over the network a message is put from where it lies in the heap; where the network does not know
// that memory, from a bounce slot. Inside a host it is read in place without either.
TEST(TwoHosts, WhatIsInTheHeapIsPutFromThere) {
  for (const bool refused : {false, true}) {
    const auto body = [&](RankOver& rank, Communicator& c) {
      sum(c, 300'000);
      EXPECT_EQ(network_of(rank).puts_from_sources(), 0u) << "ordinary memory";
      heap_of_this_rank = c.heap();
      sum(c, 300'000);
      if (c.rank() == 1) {  // all that it sends goes over the network
        EXPECT_EQ(network_of(rank).puts_from_sources() > 0, !refused);
      }
    };
    run_on({"a", "b", "a"}, body, [&](Network& network) { network.refuses_sources = refused; });
  }
}

TEST(TwoHosts, OnOneHostNothingGoesOverTheNetwork) {
  run_on({"a", "a", "a"}, [](RankOver& rank, Communicator& c) {
    sum(c, 300'000);
    EXPECT_EQ(network_of(rank).puts(), 0u);
    EXPECT_EQ(rank.transports().in_use().size(), 1u);
  });
}

// An all_to_all, a gather and a scatter, of small blocks. What is in them says whose they are.
void exchange_blocks(Communicator& c, const CallOptions& options) {
  constexpr size_t kBytes = 100;
  const auto size = static_cast<size_t>(c.size()), me = static_cast<size_t>(c.rank());
  const auto of = [](size_t from, size_t to) { return static_cast<uint8_t>(16 * from + to + 1); };
  std::vector<std::vector<uint8_t>> in(size), out(size, std::vector<uint8_t>(kBytes));
  std::vector<ConstBuffer> inputs;
  std::vector<MutableBuffer> outputs;
  for (size_t r = 0; r < size; ++r) {
    in[r].assign(kBytes, of(me, r));
    inputs.push_back({in[r].data(), kBytes});
    outputs.push_back({out[r].data(), kBytes});
  }
  finish(c, c.all_to_all(inputs, outputs, options));
  for (size_t r = 0; r < size; ++r) EXPECT_EQ(out[r], std::vector<uint8_t>(kBytes, of(r, me)));
  if (me != 0) inputs.clear(), outputs.clear();
  finish(c, c.gather({in[0].data(), kBytes}, outputs, 0, options));
  for (size_t r = 0; me == 0 && r < size; ++r) {
    EXPECT_EQ(out[r], std::vector<uint8_t>(kBytes, of(r, 0)));
  }
  finish(c, c.scatter(inputs, {out[me].data(), kBytes}, 0, options));
  EXPECT_EQ(out[me], std::vector<uint8_t>(kBytes, of(0, me)));
}

TEST(TwoHosts, EqualBlocksOfAHostGoTogether) {
  for (const bool equal_blocks : {false, true}) {
    std::atomic<uint64_t> puts = 0;
    run_on({"a", "a", "b", "b"}, [&](RankOver& rank, Communicator& c) {
      exchange_blocks(c, {.equal_blocks = equal_blocks});
      puts += network_of(rank).puts();
    });
    EXPECT_EQ(puts.load(), equal_blocks ? 2u + 1u + 1u : 8u + 2u + 2u);
  }
}

TEST(TwoHosts, ASleeperHearsOfBothTransports) {
  run_on({"a", "a", "b"}, [](RankOver&, Communicator& c) {
    for (int from = 1; from < 3; ++from) {
      float value = static_cast<float>(c.rank());
      if (c.rank() == 0) {
        finish(c, c.recv({&value, sizeof value}, from, 0));
        EXPECT_EQ(value, static_cast<float>(from));
      } else if (c.rank() == from) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        finish(c, c.send({&value, sizeof value}, 0, 0));
      }
      finish(c, c.barrier());
    }
  });
}

TEST(TwoHosts, ThoseThatAreLeftMakeAGroupOverBoth) {
  std::barrier met(4);
  run_on({"a", "a", "b", "b"}, [&](RankOver& rank, Communicator& c) {
    finish(c, c.barrier());
    met.arrive_and_wait();  // nobody is in that one any more
    if (c.rank() == 0) {
      rank.leaves = true;
      return;
    }
    auto smaller = c.shrink({}, kTestTimeoutMs, {});
    ASSERT_TRUE(smaller.ok()) << smaller.status().message();
    EXPECT_EQ(smaller.value().ranks, (std::vector<int>{1, 2, 3}));
    Communicator& three = *smaller.value().communicator;
    EXPECT_EQ(three.paths().size(), 2u);
    expect_islands(three, {0, 1, 1});
    for (const uint64_t count : {1u, 300'000u}) sum(three, count);
    finish(three, three.barrier());
  });
}

TEST(TwoHosts, ARankThatLeavesIsMissedOnBoth) {
  std::barrier met(3);
  run_on({"a", "a", "b"}, [&](RankOver& rank, Communicator& c) {
    finish(c, c.barrier());
    met.arrive_and_wait();  // nobody is in that one any more
    if (c.rank() == 0) {
      rank.leaves = true;
      return;
    }
    auto started = c.barrier();
    ASSERT_TRUE(started.ok());
    EXPECT_EQ(c.wait(*started.value(), -1, {}).code(), StatusCode::PeerFailed);
  });
}

// What has been put to a rank that then leaves is nothing that it must give back: the operation
// ends when the put does, and not before, as its source is read until then.
TEST(TwoHosts, AZeroCopyMessageToARankThatLeftEndsWithItsPut) {
  for (const bool leaves_first : {true, false}) {
    std::atomic<bool> started{false};
    std::atomic<bool> left{false};
    const auto body = [&](RankOver& rank, Communicator& c) {
      heap_of_this_rank = c.heap();
      HeapVector<uint8_t> data(100'000);
      finish(c, c.barrier());
      if (c.rank() == 1) {
        while (!leaves_first && !started) std::this_thread::yield();
        c.leave("going home");
        left = true;
        return;
      }
      while (leaves_first && !left) std::this_thread::yield();
      auto work = c.broadcast(data.data(), data.size(), 0);
      ASSERT_TRUE(work.ok()) << work.status().message();
      const Status early = c.wait(*work.value(), 50, {});
      EXPECT_EQ(early.code(), StatusCode::Timeout) << early.message();
      EXPECT_GT(network_of(rank).puts_from_sources(), 0u);
      started = true;
      while (!left) std::this_thread::yield();
      EXPECT_EQ(c.wait(*work.value(), 50, {}).code(), StatusCode::Timeout);
      network_of(rank).let_go();
      const Status status = c.wait(*work.value(), -1, {});
      EXPECT_TRUE(status.ok()) << status.message();
    };
    run_on({"a", "b"}, body, [](Network& network) { network.holds_puts = true; });
  }
}

}  // namespace
}  // namespace rdmacoll::two_hosts_test
