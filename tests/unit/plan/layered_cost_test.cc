// What the plans of two levels send across the network: the least that there is, to the byte, for
// every layout (docs/ALGORITHMS.md, "Several hosts").
#include <gtest/gtest.h>

#include <numeric>

#include "csrc/base/limits.h"
#include "csrc/plan/cost/even_tiling.h"
#include "csrc/plan/tiling.h"
#include "tests/unit/plan/layouts.h"
#include "tests/unit/plan/worlds.h"

namespace rdmacoll::layered_cost_test {
namespace {

// By island. `messages` are those that leave.
struct Traffic {
  std::vector<uint64_t> out, in, messages;

  explicit Traffic(size_t islands) : out(islands), in(islands), messages(islands) {}
  uint64_t all() const { return std::accumulate(out.begin(), out.end(), uint64_t{0}); }
  uint64_t most_out() const { return *std::max_element(out.begin(), out.end()); }
  uint64_t most_in() const { return *std::max_element(in.begin(), in.end()); }
};

bool leaves(const Step& step, const Plan& plan, const Islands& islands) {
  return step.kind == StepKind::Signal && step.counter == Counter::Data &&
         !islands.share(plan.rank, step.peer);
}

uint64_t messages_out(const Plan& plan, const Islands& islands) {
  return static_cast<uint64_t>(
      std::count_if(plan.steps.begin(), plan.steps.end(),
                    [&](const Step& step) { return leaves(step, plan, islands); }));
}

uint64_t messages_in(const Plan& plan, const Islands& islands) {
  return static_cast<uint64_t>(
      std::count_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
        return step.kind == StepKind::Wait && step.counter == Counter::Data &&
               !islands.share(plan.rank, step.peer);
      }));
}

// By the islands of sender and receiver.
std::vector<std::vector<uint64_t>> messages_between(const WorldPlan& operation) {
  const Islands& islands = operation.islands;
  std::vector<std::vector<uint64_t>> between(islands.count(),
                                             std::vector<uint64_t>(islands.count()));
  for (const Plan& plan : operation.plans) {
    for (const Step& step : plan.steps) {
      if (leaves(step, plan, islands)) ++between[islands.of(plan.rank)][islands.of(step.peer)];
    }
  }
  return between;
}

// Of one tile that holds everything: a buffer of so many bytes, or blocks of so many each.
Traffic traffic_of(const WorldPlan& operation, uint64_t bytes) {
  const Islands& islands = operation.islands;
  Traffic traffic(islands.count());
  for (const Plan& plan : operation.plans) {
    const std::vector<uint64_t> block_bytes(plan.blocks, bytes);
    const uint64_t room = bytes * plan.blocks;
    const Tiling tiling = is_contiguous(plan.collective)
                              ? Tiling::contiguous(bytes, plan, room, room, 1)
                              : Tiling::scattered(block_bytes, plan, room, room, 1);
    const uint16_t from = islands.of(plan.rank);
    for (const Operand& operand : plan.operands) {
      if (operand.buffer != Buffer::PeerSlot || islands.share(plan.rank, operand.rank)) continue;
      const uint64_t piece = tiling.piece(operand.blocks, 0).bytes;
      traffic.out[from] += piece;
      traffic.in[islands.of(operand.rank)] += piece;
    }
    traffic.messages[from] += messages_out(plan, islands);
  }
  return traffic;
}

Traffic traffic_of(const Islands& islands, Collective collective, Algorithm algorithm,
                   uint64_t bytes, uint16_t root = 0) {
  return traffic_of(plans_on(islands, collective, algorithm, root), bytes);
}

// What must cross: of a buffer of S bytes, or of blocks of S bytes each.
uint64_t least(const Islands& islands, Collective collective, uint64_t bytes) {
  const uint64_t others = islands.count() - 1;
  switch (collective) {
    case Collective::AllReduce:
      return 2 * others * bytes;  // each byte's sums to its owner, and the result back
    case Collective::Reduce:
    case Collective::Broadcast:
      return others * bytes;
    default:
      return others * bytes * islands.world();  // each block out of, or into, all islands but one
  }
}

// Rails, and halving and doubling from host to host.
constexpr Layered kOfLeastBytes[] = {
    {Collective::AllReduce, Algorithm::Rails}, {Collective::AllReduce, Algorithm::HalvingDoubling},
    {Collective::Reduce, Algorithm::Rails},    {Collective::Broadcast, Algorithm::Rails},
    {Collective::AllGather, Algorithm::Rails}, {Collective::ReduceScatter, Algorithm::Rails}};

TEST(LayeredCostTest, RailsAndRoundsSendNoByteThatTheyNeedNot) {
  for (uint32_t world = 3; world <= 7; ++world) {
    for_each_layout(world, [&](const Islands& islands) {
      for (const auto& [collective, algorithm] : kOfLeastBytes) {
        for (uint64_t bytes : {1u, 7u, 1000u}) {  // also fewer than there are blocks
          const uint16_t root = has_root(collective) ? static_cast<uint16_t>(world / 2) : 0;
          const Traffic traffic = traffic_of(islands, collective, algorithm, bytes, root);
          ASSERT_EQ(traffic.all(), least(islands, collective, bytes))
              << collective_name(collective) << " on " << islands.shape();
        }
      }
    });
  }
}

TEST(LayeredCostTest, EqualHostsSendEquallyMuch) {
  for (const auto& [hosts, ranks] : {std::pair{2u, 4u}, {3u, 2u}, {8u, 8u}, {4u, 16u}, {21u, 3u}}) {
    const Islands islands = round_robin(hosts, ranks);
    const uint64_t bytes = 64 * 63 * hosts;  // whole bytes everywhere
    for (const auto& [collective, algorithm] : kOfLeastBytes) {
      const Traffic traffic = traffic_of(islands, collective, algorithm, bytes, 1);
      const uint64_t all = least(islands, collective, bytes);
      const bool chained = collective == Collective::Reduce || collective == Collective::Broadcast;
      const uint64_t of_each = chained ? bytes : all / hosts;
      EXPECT_EQ(traffic.most_out(), of_each) << collective_name(collective);
      EXPECT_EQ(traffic.most_in(), of_each) << collective_name(collective);
    }
  }
}

// As many bytes where stages hold groups of blocks.
TEST(LayeredCostTest, GroupsSendNoByteThatTheyNeedNot) {
  for (const char* shape : {"2x4", "5x2", "1+2+3", "3x1+2x2"}) {
    const Islands islands = Islands::of_shape(shape).take();
    for (Collective collective : kInGroups) {
      const Traffic traffic = traffic_of(rails_in_groups(islands, collective, 4), 1000);
      EXPECT_EQ(traffic.all(), least(islands, collective, 1000)) << shape;
    }
  }
}

// Two messages of each round from a host's rank, but of the first and of the last up to eight, and
// one more where they are not in a row.
TEST(LayeredCostTest, RoundsSendFewMessages) {
  for (const auto& [hosts, rounds] : {std::pair{64u, 6u}, {100u, 7u}, {256u, 8u}, {512u, 9u}}) {
    const Islands islands = Islands::of_shape(std::to_string(hosts) + "x8").take();
    const Plan plan = make_plan(Collective::AllReduce, Algorithm::HalvingDoubling, 0, islands, 0);
    EXPECT_LE(messages_out(plan, islands), 2 * (2 * rounds + 8)) << hosts;
    EXPECT_GE(messages_out(plan, islands), 2 * rounds) << hosts;
  }
}

// However many hosts there are, messages of rails are as large as slots.
TEST(LayeredCostTest, RailsOnHundredsOfHostsFillTheirSlots) {
  for (const char* shape : {"16x8", "64x8", "256x8", "512x8", "2048x8"}) {
    const Islands islands = Islands::of_shape(shape).take();
    for (Collective collective :
         {Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter}) {
      const Plan plan = make_plan(collective, Algorithm::Rails, 0, islands, 0);
      const uint64_t bytes = uint64_t{1} << 30;
      const EvenTiling tiling(plan, bytes, {kSlotBytesMin, kStageBytesMax});
      EXPECT_EQ(tiling.bytes_of({0, 1}), kSlotBytesMin) << collective_name(collective) << shape;
    }
  }
}

// All blocks, or sums, that one host has for another are in one message: no byte more than with
// rails.
TEST(LayeredCostTest, LeadersSendAHostsBlocksInOneMessageToEveryOtherHost) {
  for (uint32_t world = 3; world <= 7; ++world) {
    for_each_layout(world, [&](const Islands& islands) {
      for (Collective collective : {Collective::AllGather, Collective::ReduceScatter}) {
        const WorldPlan operation = plans_on(islands, collective, Algorithm::Leaders);
        for (uint64_t bytes : {1u, 1000u}) {
          const Traffic traffic = traffic_of(operation, bytes);
          for (uint32_t island = 0; island < islands.count(); ++island) {
            const uint64_t own = islands.size(island);
            const uint64_t blocks = collective == Collective::AllGather
                                        ? own * (islands.count() - 1)
                                        : islands.world() - own;
            ASSERT_EQ(traffic.out[island], blocks * bytes)
                << collective_name(collective) << " on " << islands.shape();
          }
        }
        const auto between = messages_between(operation);
        for (uint32_t from = 0; from < islands.count(); ++from) {
          for (uint32_t to = 0; to < islands.count(); ++to) {
            ASSERT_EQ(between[from][to], from != to)
                << collective_name(collective) << " on " << islands.shape();
          }
        }
      }
    });
  }
}

// Where there are ranks enough, none sends to two hosts.
TEST(LayeredCostTest, LeadersShareTheOtherHostsOut) {
  for (const char* shape : {"4x4", "3x2+1", "8x8", "2+1+7"}) {
    const Islands islands = Islands::of_shape(shape).take();
    for (Collective collective :
         {Collective::AllGather, Collective::ReduceScatter, Collective::AllToAll}) {
      for (const Plan& plan : plans_on(islands, collective, Algorithm::Leaders).plans) {
        const uint32_t size = islands.size(islands.of(plan.rank));
        const uint32_t most = (islands.count() + size - 1) / size;
        EXPECT_LE(messages_out(plan, islands), most) << collective_name(collective) << shape;
        EXPECT_LE(messages_in(plan, islands), most) << collective_name(collective) << shape;
      }
    }
  }
}

// Each block crosses once, whatever the plan; leaders send those of a pair of hosts together.
TEST(LayeredCostTest, AnAllToAllIsOneMessageFromEveryHostToEveryOther) {
  for (uint32_t world = 3; world <= 7; ++world) {
    for_each_layout(world, [&](const Islands& islands) {
      for (Algorithm algorithm : {Algorithm::Direct, Algorithm::Leaders}) {
        const WorldPlan operation = plans_on(islands, Collective::AllToAll, algorithm);
        for (uint64_t bytes : {1u, 1000u}) {
          const Traffic traffic = traffic_of(operation, bytes);
          for (uint32_t island = 0; island < islands.count(); ++island) {
            const uint64_t own = islands.size(island), pairs = own * (world - own);
            ASSERT_EQ(traffic.out[island], pairs * bytes) << islands.shape();
            ASSERT_EQ(traffic.in[island], pairs * bytes) << islands.shape();
          }
        }
        const auto between = messages_between(operation);
        for (uint32_t from = 0; from < islands.count(); ++from) {
          for (uint32_t to = 0; to < islands.count(); ++to) {
            const uint64_t pairs = islands.size(from) * islands.size(to);
            const uint64_t messages = algorithm == Algorithm::Leaders ? 1 : pairs;
            ASSERT_EQ(between[from][to], from == to ? 0 : messages) << islands.shape();
          }
        }
      }
    });
  }
}

TEST(LayeredCostTest, OfEightHostsAnAllToAllIs56Messages) {
  const auto messages = [](const Islands& islands, Algorithm algorithm) {
    const Traffic traffic = traffic_of(islands, Collective::AllToAll, algorithm, 1);
    return std::accumulate(traffic.messages.begin(), traffic.messages.end(), uint64_t{0});
  };
  for (const Islands& islands : {Islands::of_shape("8x8").take(), round_robin(8, 8)}) {
    EXPECT_EQ(messages(islands, Algorithm::Direct), 3584u);
    EXPECT_EQ(messages(islands, Algorithm::Leaders), 56u);
  }
}

// Whoever sends need not take, too, where there are ranks enough.
TEST(LayeredCostTest, ABundleEachIsWhatARankHasInAnAllToAll) {
  for (const char* shape : {"2x2", "2x8", "3x4", "4x8"}) {
    const Islands islands = Islands::of_shape(shape).take();
    for (const Plan& plan : plans_on(islands, Collective::AllToAll, Algorithm::Leaders).plans) {
      EXPECT_LE(messages_out(plan, islands) + messages_in(plan, islands), 1u) << shape;
    }
  }
}

// More blocks than the smallest slot holds lines go as several messages, of other ranks each.
TEST(LayeredCostTest, WhatIsMoreThanASlotHoldsIsSharedOut) {
  struct {
    const char* shape;
    uint64_t to_next, back;  // messages of the first host to the second, and back
  } const cases[] = {{"2x16", 4, 4}, {"9+8", 2, 2}, {"3x12", 3, 3}, {"64+2", 2, 2}, {"8x8", 1, 1}};
  for (const auto& [shape, to_next, back] : cases) {
    const Islands islands = Islands::of_shape(shape).take();
    const WorldPlan operation = plans_on(islands, Collective::AllToAll, Algorithm::Leaders);
    const auto between = messages_between(operation);
    EXPECT_EQ(between[0][1], to_next) << shape;
    EXPECT_EQ(between[1][0], back) << shape;
    const Traffic traffic = traffic_of(operation, 1);
    for (const Plan& plan : operation.plans) {
      const uint32_t island = islands.of(plan.rank), size = islands.size(island);
      EXPECT_LE(messages_out(plan, islands), (traffic.messages[island] + size - 1) / size) << shape;
      EXPECT_LE(plan.slot_blocks, 64u) << shape;
    }
  }
}

// Blocks of other hosts cross once, those of a host together.
TEST(LayeredCostTest, GatherAndScatterAreOneMessagePerOtherHost) {
  for (uint32_t world = 3; world <= 7; ++world) {
    for_each_layout(world, [&](const Islands& islands) {
      for (uint16_t root : {0u, world / 2, world - 1}) {
        const uint32_t at_root = islands.of(root), others = world - islands.size(at_root);
        for (uint64_t bytes : {1u, 1000u}) {
          const Traffic gather =
              traffic_of(islands, Collective::Gather, Algorithm::Leaders, bytes, root);
          const Traffic scatter =
              traffic_of(islands, Collective::Scatter, Algorithm::Leaders, bytes, root);
          for (uint32_t island = 0; island < islands.count(); ++island) {
            const bool rooted = island == at_root;
            const uint64_t own = islands.size(island) * bytes;
            ASSERT_EQ(gather.out[island], rooted ? 0 : own) << islands.shape();
            ASSERT_EQ(gather.in[island], rooted ? others * bytes : 0) << islands.shape();
            ASSERT_EQ(gather.messages[island], !rooted) << islands.shape();
            ASSERT_EQ(scatter.in[island], rooted ? 0 : own) << islands.shape();
            ASSERT_EQ(scatter.out[island], rooted ? others * bytes : 0) << islands.shape();
            ASSERT_EQ(scatter.messages[island], rooted ? islands.count() - 1 : 0);
          }
        }
      }
    });
  }
}

// Not by the root alone, which has the others of its host to help it.
TEST(LayeredCostTest, TheRootsHostSharesTheOtherHostsOut) {
  for (const char* shape : {"4x4", "8x8", "2+1+7", "8x2"}) {
    const Islands islands = Islands::of_shape(shape).take();
    const auto root = static_cast<uint16_t>(islands.world() - 1);
    const uint32_t size = islands.size(islands.of(root));
    const uint32_t most = (islands.count() + size - 1) / size;
    for (const Plan& plan : plans_on(islands, Collective::Gather, Algorithm::Leaders, root).plans) {
      EXPECT_LE(messages_in(plan, islands), most) << shape;
    }
    for (const Plan& plan :
         plans_on(islands, Collective::Scatter, Algorithm::Leaders, root).plans) {
      EXPECT_LE(messages_out(plan, islands), most) << shape;
    }
  }
}

// Their hosts send the whole buffer to each other; a message each.
TEST(LayeredCostTest, LeadersSendOneMessageToEveryOtherHost) {
  for (uint32_t world = 3; world <= 6; ++world) {
    for_each_layout(world, [&](const Islands& islands) {
      const uint64_t others = islands.count() - 1;
      const Traffic all_reduce =
          traffic_of(islands, Collective::AllReduce, Algorithm::Leaders, 1000);
      for (uint32_t island = 0; island < islands.count(); ++island) {
        EXPECT_EQ(all_reduce.out[island], others * 1000);
        EXPECT_EQ(all_reduce.messages[island], others);
      }
      for (uint16_t root : {0u, world - 1}) {
        const Traffic reduce =
            traffic_of(islands, Collective::Reduce, Algorithm::Leaders, 1000, root);
        EXPECT_EQ(reduce.all(), others * 1000);
        EXPECT_EQ(reduce.in[islands.of(root)], others * 1000);
        const Traffic broadcast =
            traffic_of(islands, Collective::Broadcast, Algorithm::Leaders, 1000, root);
        EXPECT_EQ(broadcast.all(), others * 1000);
        EXPECT_EQ(broadcast.out[islands.of(root)], others * 1000);
      }
    });
  }
}

TEST(LayeredCostTest, ABarrierIsLogarithmicInTheHosts) {
  const Traffic of_eight =
      traffic_of(round_robin(8, 4), Collective::Barrier, Algorithm::Leaders, 1);
  for (uint64_t messages : of_eight.messages) EXPECT_EQ(messages, 3u);
}

// Why there are plans of two levels: what those of one send.
TEST(LayeredCostTest, PlansOfOneLevelSendEightTimesTheBytes) {
  const Islands islands = Islands::of_shape("8x8").take();
  const uint64_t bytes = 64 * 64;
  const auto out_in_buffers = [&](Algorithm algorithm, const Islands& layout) {
    return static_cast<double>(
               traffic_of(layout, Collective::AllReduce, algorithm, bytes).most_out()) /
           static_cast<double>(bytes);
  };
  EXPECT_DOUBLE_EQ(out_in_buffers(Algorithm::Rails, islands), 1.75);
  EXPECT_DOUBLE_EQ(out_in_buffers(Algorithm::Direct, islands), 14);
}

// Whoever sends to neighbours has them on its own host where it can, however ranks were dealt out:
// a ring around these in ascending order would send 15.75 buffers.
TEST(LayeredCostTest, NeighboursAreThoseOfAHost) {
  for (const auto& [collective, algorithm] : all_by_neighbours()) {
    for (const auto& [hosts, ranks] : {std::pair{8u, 8u}, {3u, 2u}, {2u, 4u}}) {
      const std::string shape = std::to_string(hosts) + "x" + std::to_string(ranks);
      const Islands in_a_row = Islands::of_shape(shape).take();
      EXPECT_EQ(traffic_of(round_robin(hosts, ranks), collective, algorithm, 4096).most_out(),
                traffic_of(in_a_row, collective, algorithm, 4096).most_out())
          << collective_name(collective) << " " << algorithm_name(algorithm) << " on " << shape;
    }
  }
}

}  // namespace
}  // namespace rdmacoll::layered_cost_test
