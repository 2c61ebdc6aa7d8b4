// Every collective on ranks that are threads, exact, in place and out of place.
#include <cstring>
#include <numeric>

#include "tests/unit/engine/in_heap.h"
#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::collectives_test {
namespace {

struct Case {
  int world;
  const char* algorithm;
};

// Where the buffers lie: what is in the heap is read by the peers, not copied.
enum class Placement { Ordinary, Heap, EvenRanksInHeap };

using Param = std::tuple<Case, Placement>;

std::string case_name(const testing::TestParamInfo<Param>& info) {
  static constexpr const char* kPlacements[] = {"ordinary", "heap", "mixed"};
  const auto [test, placement] = info.param;
  return std::string(test.algorithm) + "_" + std::to_string(test.world) + "_" +
         kPlacements[static_cast<int>(placement)];
}

using Floats = HeapVector<float>;

const std::vector<uint64_t> kCounts = {0, 1, 2, 3, 7, 12, 13, 1000, 4099, 40'009};

// Small integers, so that every sum is exact; different per rank and place.
float element(int rank, uint64_t i) { return static_cast<float>((rank * 31 + i * 7) % 101); }

Floats contribution(int rank, uint64_t count) {
  Floats values(count);
  for (uint64_t i = 0; i < count; ++i) values[i] = element(rank, i);
  return values;
}

Floats sum_of_all(int world, uint64_t count) {
  Floats sum(count, 0.0f);
  for (int rank = 0; rank < world; ++rank) {
    for (uint64_t i = 0; i < count; ++i) sum[i] += element(rank, i);
  }
  return sum;
}

class Collectives : public testing::TestWithParam<Param> {
 protected:
  void run(const WorldOfThreads::Body& body) {
    const auto [test, placement] = GetParam();
    Config config = config_of_environment();
    config.block_bytes = 64 << 10;  // small slots, so that few bytes make many tiles
    config.zero_copy_local_bytes = config.zero_copy_remote_bytes = 256;
    config.heap_bytes = 16 << 20;
    config.algorithm = test.algorithm;
    config.stores = placement == Placement::Ordinary ? "auto" : "streamed";
    WorldOfThreads(test.world, config).run([&, placement = placement](Communicator& c) {
      const bool in_heap = placement == Placement::Heap ||
                           (placement == Placement::EvenRanksInHeap && c.rank() % 2 == 0);
      heap_of_this_rank = in_heap ? c.heap() : nullptr;
      body(c);
      EXPECT_EQ(c.heap()->stats().allocated_bytes, 0u);
    });
  }
};

TEST_P(Collectives, AllReduce) {
  run([](Communicator& c) {
    for (const uint64_t count : kCounts) {
      Floats in = contribution(c.rank(), count);
      const Floats kept = in;
      Floats out(count);
      finish(c, c.all_reduce(in.data(), out.data(), count, DType::Float32, ReduceOp::Sum));
      ASSERT_EQ(out, sum_of_all(c.size(), count)) << "count " << count;
      ASSERT_EQ(in, kept) << "count " << count;
      finish(c, c.all_reduce(in.data(), in.data(), count, DType::Float32, ReduceOp::Sum));
      ASSERT_EQ(in, out) << "in place, count " << count;
    }
  });
}

TEST_P(Collectives, AverageDividesOnce) {
  run([](Communicator& c) {
    for (const uint64_t count : kCounts) {
      Floats data(count);
      for (uint64_t i = 0; i < count; ++i) {
        data[i] = static_cast<float>(c.size()) * element(c.rank(), i);
      }
      finish(c, c.all_reduce(data.data(), data.data(), count, DType::Float32, ReduceOp::Avg));
      ASSERT_EQ(data, sum_of_all(c.size(), count)) << "count " << count;
    }
  });
}

// The same bits whatever the algorithm: sums wrap, and are divided once.
TEST_P(Collectives, AverageOfIntegersTruncatesOnce) {
  run([](Communicator& c) {
    for (const uint64_t count : kCounts) {
      std::vector<int8_t> data(count), expected(count);
      for (uint64_t i = 0; i < count; ++i) {
        int sum = 0;
        for (int r = 0; r < c.size(); ++r) {
          const auto value = static_cast<int8_t>(i * 7 + r * 100);
          if (r == c.rank()) data[i] = value;
          sum += value;
        }
        expected[i] = static_cast<int8_t>(static_cast<int8_t>(sum) / c.size());
      }
      finish(c, c.all_reduce(data.data(), data.data(), count, DType::Int8, ReduceOp::Avg));
      ASSERT_EQ(data, expected) << "count " << count;
    }
  });
}

TEST_P(Collectives, BroadcastAndReduceFromEveryRoot) {
  run([](Communicator& c) {
    for (int root = 0; root < c.size(); ++root) {
      for (const uint64_t count : kCounts) {
        Floats data = contribution(c.rank() == root ? 5 : 6, count);
        finish(c, c.broadcast(data.data(), count * sizeof(float), root));
        ASSERT_EQ(data, contribution(5, count)) << "root " << root << " count " << count;

        const Floats in = contribution(c.rank(), count);
        Floats out(c.rank() == root ? count : 0);
        finish(c, c.reduce(in.data(), out.data(), count, DType::Float32, ReduceOp::Sum, root));
        if (c.rank() == root) {
          ASSERT_EQ(out, sum_of_all(c.size(), count)) << "root " << root << " count " << count;
        }
      }
    }
  });
}

// Uneven on purpose: rank r has (r + 1) % 4 parts of `count`, so some have nothing.
uint64_t share(int rank, uint64_t count) { return (rank + 1) % 4 * count; }

TEST_P(Collectives, AllGatherUneven) {
  run([](Communicator& c) {
    for (const uint64_t count : kCounts) {
      const Floats in = contribution(c.rank(), share(c.rank(), count));
      std::vector<Floats> out;
      std::vector<MutableBuffer> buffers;
      for (int r = 0; r < c.size(); ++r) out.emplace_back(share(r, count));
      for (auto& part : out) buffers.push_back({part.data(), part.size() * sizeof(float)});
      finish(c, c.all_gather({in.data(), in.size() * sizeof(float)}, buffers));
      for (int r = 0; r < c.size(); ++r) ASSERT_EQ(out[r], contribution(r, share(r, count)));
    }
  });
}

TEST_P(Collectives, ReduceScatterUneven) {
  run([](Communicator& c) {
    for (const uint64_t count : kCounts) {
      std::vector<Floats> in;
      std::vector<ConstBuffer> buffers;
      for (int r = 0; r < c.size(); ++r) in.push_back(contribution(c.rank(), share(r, count)));
      for (const auto& part : in) buffers.push_back({part.data(), part.size() * sizeof(float)});
      Floats out(share(c.rank(), count));
      finish(c, c.reduce_scatter(buffers, {out.data(), out.size() * sizeof(float)}, DType::Float32,
                                 ReduceOp::Sum));
      ASSERT_EQ(out, sum_of_all(c.size(), out.size()));
    }
  });
}

TEST_P(Collectives, AllToAllUneven) {
  run([](Communicator& c) {
    for (const uint64_t count : kCounts) {
      std::vector<Floats> in, out;
      std::vector<ConstBuffer> inputs;
      std::vector<MutableBuffer> outputs;
      for (int r = 0; r < c.size(); ++r) {
        in.push_back(contribution(c.rank() + r, share(c.rank() + r, count)));
        out.emplace_back(share(c.rank() + r, count));
      }
      for (auto& part : in) inputs.push_back({part.data(), part.size() * sizeof(float)});
      for (auto& part : out) outputs.push_back({part.data(), part.size() * sizeof(float)});
      finish(c, c.all_to_all(inputs, outputs));
      for (int r = 0; r < c.size(); ++r) ASSERT_EQ(out[r], in[r]) << "from " << r;
    }
  });
}

TEST_P(Collectives, GatherAndScatterFromEveryRoot) {
  run([](Communicator& c) {
    for (int root = 0; root < c.size(); ++root) {
      for (const uint64_t count : kCounts) {
        const Floats mine = contribution(c.rank(), share(c.rank(), count));
        std::vector<Floats> all;
        std::vector<MutableBuffer> outputs;
        std::vector<ConstBuffer> inputs;
        if (c.rank() == root) {
          for (int r = 0; r < c.size(); ++r) all.emplace_back(share(r, count));
          for (auto& part : all) outputs.push_back({part.data(), part.size() * sizeof(float)});
          for (auto& part : all) inputs.push_back({part.data(), part.size() * sizeof(float)});
        }
        finish(c, c.gather({mine.data(), mine.size() * sizeof(float)}, outputs, root));
        for (size_t r = 0; r < all.size(); ++r) {
          ASSERT_EQ(all[r], contribution(static_cast<int>(r), share(static_cast<int>(r), count)));
        }
        Floats back(mine.size());
        finish(c, c.scatter(inputs, {back.data(), back.size() * sizeof(float)}, root));
        ASSERT_EQ(back, mine);
      }
    }
  });
}

TEST_P(Collectives, ManyInFlightMixed) {
  run([](Communicator& c) {
    std::vector<Floats> data;
    std::vector<WorkPtr> works;
    for (int i = 0; i < 40; ++i) {
      data.push_back(contribution(c.rank(), i * 997));
      auto work = i % 5 == 4 ? c.barrier()
                             : c.all_reduce(data[i].data(), data[i].data(), data[i].size(),
                                            DType::Float32, ReduceOp::Sum);
      ASSERT_TRUE(work.ok());
      works.push_back(work.take());
    }
    for (int i = 39; i >= 0; --i) {  // in any order
      ASSERT_TRUE(c.wait(*works[i], -1, {}).ok());
      if (i % 5 == 4) continue;
      ASSERT_EQ(data[i], sum_of_all(c.size(), data[i].size())) << i;
    }
  });
}

// Results larger than caches are written in another way.
TEST(LargeCollectives, GiveTheSame) {
  const uint64_t count = kStreamBytes / sizeof(float) + 1001;
  WorldOfThreads(2).run([&](Communicator& c) {
    for (Heap* heap : {static_cast<Heap*>(nullptr), c.heap()}) {
      heap_of_this_rank = heap;
      Floats data = contribution(c.rank(), count);
      finish(c, c.all_reduce(data.data(), data.data(), count, DType::Float32, ReduceOp::Sum));
      ASSERT_TRUE(data == sum_of_all(2, count));
      Floats all(2 * count);
      std::vector<MutableBuffer> parts;
      for (int r = 0; r < 2; ++r) parts.push_back({all.data() + r * count, count * sizeof(float)});
      data = contribution(c.rank(), count);
      finish(c, c.all_gather({data.data(), count * sizeof(float)}, parts));
      for (int r = 0; r < 2; ++r) {
        const Floats part = contribution(r, count);
        ASSERT_EQ(std::memcmp(parts[r].data, part.data(), parts[r].bytes), 0) << "from " << r;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, Collectives,
    testing::Combine(
        testing::Values(Case{1, "auto"}, Case{2, "auto"}, Case{3, "auto"}, Case{4, "auto"},
                        Case{7, "auto"}, Case{2, "ring"}, Case{3, "ring"}, Case{2, "tree"},
                        Case{5, "tree"}, Case{4, "halving_doubling"}, Case{7, "halving_doubling"},
                        Case{3, "one_shot"}, Case{3, "two_shot"}),
        testing::Values(Placement::Ordinary, Placement::Heap, Placement::EvenRanksInHeap)),
    case_name);

}  // namespace
}  // namespace rdmacoll::collectives_test
