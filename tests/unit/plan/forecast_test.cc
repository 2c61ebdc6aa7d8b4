// Forecast: the formulas against the plans, and what follows from them.
#include "csrc/plan/cost/forecast.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <tuple>

#include "tests/unit/plan/layouts.h"
#include "tests/unit/plan/worlds.h"

namespace rdmacoll::forecast_test {
namespace {

// How many messages follow each other, those across the network first.
using Hops = std::pair<uint32_t, uint32_t>;

// One tile of all the world's plans, as messages come.
class ChainRun {
 public:
  explicit ChainRun(const WorldPlan& operation) : operation_(operation) {
    for (const Plan& plan : operation.plans) {
      for (const Lane& lane : plan.lanes) lanes_.push_back({&plan, lane, 0, {}});
    }
  }

  Hops run() {
    for (bool ran = true; ran;) {
      ran = false;
      for (State& lane : lanes_) {
        while (lane.next < lane.lane.steps && advance(lane)) ran = true;
      }
    }
    Hops longest{};
    for (const State& lane : lanes_) {
      EXPECT_EQ(lane.next, lane.lane.steps) << "waits for ever";
      longest = std::max(longest, lane.hops);
    }
    return longest;
  }

 private:
  struct State {
    const Plan* plan;
    Lane lane;
    uint32_t next;
    Hops hops;
  };
  using Queue = std::tuple<uint16_t, uint16_t, uint8_t>;  // from, to, channel

  bool advance(State& lane) {
    const Step& step = lane.plan->steps[lane.lane.first_step + lane.next];
    const uint16_t me = lane.plan->rank;
    if (step.counter == Counter::Data && step.kind == StepKind::Signal) {
      Hops hops = lane.hops;
      if (step.peer != me) {
        ++(operation_.islands.share(step.peer, me) ? hops.second : hops.first);
      }
      messages_[{me, step.peer, step.channel}].push_back(hops);
    }
    if (step.counter == Counter::Data && step.kind == StepKind::Wait) {
      const Queue queue{step.peer, me, step.channel};
      size_t& taken = taken_[queue];
      if (messages_[queue].size() == taken) return false;
      lane.hops = std::max(lane.hops, messages_[queue][taken++]);
    }
    ++lane.next;
    return true;
  }

  const WorldPlan& operation_;
  std::vector<State> lanes_;
  std::map<Queue, std::vector<Hops>> messages_;
  std::map<Queue, size_t> taken_;
};

Hops formula(const Islands& islands, Collective collective, Algorithm algorithm) {
  const Chain chain = chain_of(collective, algorithm, islands);
  return {chain.network, chain.memory};
}

TEST(ForecastTest, ChainsOfTwoLevelsAreThoseOfThePlans) {
  for (const char* shape : {"2x2", "3x2", "2x4", "4x4", "5x3"}) {
    const Islands islands = Islands::of_shape(shape).take();
    for (const auto& [collective, algorithm] : all_layered()) {
      const WorldPlan operation = plans_on(islands, collective, algorithm);
      EXPECT_EQ(ChainRun(operation).run(), formula(islands, collective, algorithm))
          << collective_name(collective) << " " << algorithm_name(algorithm) << " on " << shape;
    }
  }
}

TEST(ForecastTest, ChainsOfOneLevelAreThoseOfThePlans) {
  for (const Subject& subject : all_subjects()) {
    for (uint32_t world : {2u, 4u, 5u, 8u}) {
      const Islands islands = subject.islands(world);
      const WorldPlan operation = plans_of(subject, static_cast<uint16_t>(world));
      EXPECT_EQ(ChainRun(operation).run(), formula(islands, subject.collective, subject.algorithm))
          << subject.name() << " of " << world;
    }
  }
}

constexpr Room kRoom{64 << 10, 512 << 10};

int64_t time_ns(const char* shape, Algorithm algorithm, uint64_t bytes, const Links& links = {}) {
  const Islands islands = Islands::of_shape(shape).take();
  return Forecast(Collective::AllReduce, algorithm, islands, 0).time_ns(bytes, kRoom, links);
}

TEST(ForecastTest, LeadersAreForLatencyAndRailsForBandwidth) {
  for (const char* shape : {"2x4", "4x4", "8x8"}) {
    EXPECT_LT(time_ns(shape, Algorithm::Leaders, 4), time_ns(shape, Algorithm::Rails, 4)) << shape;
    EXPECT_GT(time_ns(shape, Algorithm::Leaders, 64 << 20),
              time_ns(shape, Algorithm::Rails, 64 << 20))
        << shape;
    EXPECT_LT(time_ns(shape, Algorithm::Rails, 64 << 20),
              time_ns(shape, Algorithm::Direct, 64 << 20))
        << shape;
  }
}

TEST(ForecastTest, WhatLinksCostMoreTakesLonger) {
  const int64_t before_ns = time_ns("4x4", Algorithm::Rails, 1 << 20);
  for (int64_t Links::Network::* cost : {&Links::Network::latency_ns, &Links::Network::overhead_ns,
                                         &Links::Network::gap_ps, &Links::Network::host_gap_ps}) {
    Links dearer;
    dearer.network.*cost *= 100;
    EXPECT_GT(time_ns("4x4", Algorithm::Rails, 1 << 20, dearer), before_ns);
  }
  for (int64_t Links::Memory::* cost :
       {&Links::Memory::latency_ns, &Links::Memory::overhead_ns, &Links::Memory::gap_ps}) {
    Links dearer;
    dearer.memory.*cost *= 100;
    EXPECT_GT(time_ns("4x4", Algorithm::Rails, 1 << 20, dearer), before_ns);
  }
}

// What the busiest island sends and takes, counted on all of them.
std::pair<uint64_t, uint64_t> busiest(const WorldPlan& operation, uint64_t bytes) {
  const Islands& islands = operation.islands;
  std::vector<uint64_t> out(islands.count()), in(islands.count());
  for (const Plan& plan : operation.plans) {
    const EvenTiling whole = EvenTiling::whole(plan, bytes);
    for (const Operand& operand : plan.operands) {
      if (operand.buffer != Buffer::PeerSlot || islands.share(plan.rank, operand.rank)) continue;
      out[islands.of(plan.rank)] += whole.bytes_of(operand.blocks);
      in[islands.of(operand.rank)] += whole.bytes_of(operand.blocks);
    }
  }
  return {*std::max_element(out.begin(), out.end()), *std::max_element(in.begin(), in.end())};
}

TEST(ForecastTest, TheBusiestIslandIsFoundWhereverItIs) {
  const uint64_t bytes = Forecast::kCountedBytes;
  for (const char* shape : {"3x3", "4+1+3+1", "1+4+2+2", "7x3", "5x1"}) {
    const Islands islands = Islands::of_shape(shape).take();
    for (size_t index = 0; index < kCollectives; ++index) {
      const auto collective = static_cast<Collective>(index);
      for (Algorithm algorithm : algorithms_of(collective, islands)) {
        for (const uint32_t root : {0u, 1u, islands.world() - 1u}) {
          const Forecast forecast(collective, algorithm, islands, static_cast<uint16_t>(root));
          const auto [out, in] =
              busiest(plans_on(islands, collective, algorithm, static_cast<uint16_t>(root)), bytes);
          EXPECT_EQ(std::pair(forecast.out_bytes(bytes), forecast.in_bytes(bytes)),
                    std::pair(out, in))
              << collective_name(collective) << " " << algorithm_name(algorithm) << " on " << shape
              << " from " << root;
        }
      }
    }
  }
}

// A root that copies its input into a message, and a child that copies it out: each loads and
// stores every byte once.
TEST(ForecastTest, BytesInMemoryAreThoseOfCopiesAndFolds) {
  constexpr Links kOnlyMemory{{0, 0, 1000}, {0, 0, 0, 0}};
  const Forecast tree(Collective::Broadcast, Algorithm::Tree, Islands::together(2), 0);
  EXPECT_EQ(tree.time_ns(1 << 20, kRoom, kOnlyMemory), 2 << 20);
}

TEST(ForecastTest, WhatTakesDaysIsForecastWithoutOverflow) {
  const Islands islands = Islands::of_shape("512x8").take();
  const Forecast all_to_each(Collective::AllReduce, Algorithm::OneShot, islands, 0);
  const int64_t of_gibibyte_ns = all_to_each.time_ns(uint64_t{1} << 30, kRoom, {});
  EXPECT_GT(all_to_each.time_ns(uint64_t{1} << 40, kRoom, {}), 1000 * of_gibibyte_ns);
}

// A twentieth of the time of a chain through all tiles, and exact in bytes.
TEST(ForecastTest, ThousandsOfHostsAreForecast) {
  const Islands islands = Islands::of_shape("512x8").take();
  const Forecast rails(Collective::AllReduce, Algorithm::Rails, islands, 0);
  EXPECT_EQ(rails.out_bytes(512 << 20), (uint64_t{2} * 511) << 20);
  EXPECT_EQ(rails.chain().network, 2u);
  EXPECT_GT(rails.time_ns(512 << 20, kRoom, {}), 0);
}

}  // namespace
}  // namespace rdmacoll::forecast_test
