// Direct placement as the sender: a grant that a hostile peer has written makes no write beside its
// region.
#include "csrc/engine/collective/direct_placement.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "csrc/plan/selection/select.h"
#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll::direct_placement_test {
namespace {

constexpr uint32_t kPeer = 1;
constexpr uint64_t kBlockBytes = 1 << 16;

// In the inline data of a grant's line.
struct GrantWire {
  uint64_t offset = 0;
  int64_t stride_bytes = 0;
  uint32_t block = 0;
  std::array<char, kShortKeyBytes> key{'k'};
};

// Where the only block that goes to the peer is put: 8 KiB of it, 4 KiB in.
std::optional<RemoteSlice> place(const GrantWire& grant, uint64_t held_bytes) {
  const ManualClock clock;
  const Layout layout(2, kSlotBytesMin, kStageBytesMin);
  const Plan plan = make_plan(Collective::AllToAll, Algorithm::Direct, 0, Islands::apart(2), 0);
  FakeTransport fake("verbs", "");
  fake.open_as = {5, nullptr, held_bytes};
  const SharedSegment block = SharedSegment::create(layout.block_bytes()).take();
  const Region mine{.id = 0, .base = block.data(), .bytes = layout.block_bytes()};
  PeerLinks links(layout, 0, 2, mine);
  links.add(kPeer, {.transport = &fake, .own_slab = mine, .own_room = layout.room(1)});
  std::vector<std::byte> output(kBlockBytes);
  Operation operation;
  operation.plan = &plan;
  operation.sequence = 1;
  operation.contiguous = false;
  operation.block_bytes.assign(4, kBlockBytes);
  operation.outputs.assign(4, output.data());
  DirectPlacement placement(links, nullptr, clock, 1);
  placement.begin(operation, kBlockBytes);
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::Signal || !step.placed) continue;
    Line& line = *reinterpret_cast<Line*>(block.data() + layout.grant(layout.room(1)));
    line.signature = operation.message_signature(step.blocks);
    std::memcpy(line.inline_data, &grant, sizeof(grant));
    line.counter = 1;
    EXPECT_FALSE(placement.is_undecided(kPeer));
    return placement.place(kPeer, step.blocks, {.offset = 4096, .bytes = 8192});
  }
  ADD_FAILURE() << "nothing is placed in this plan";
  return std::nullopt;
}

TEST(DirectPlacement, IsPutWhereThePeerSays) {
  const auto slice = place({.offset = 100, .block = 1}, 100 + 4096 + 8192);
  ASSERT_TRUE(slice);
  EXPECT_EQ(slice->offset, 100u + 4096);
  EXPECT_EQ(slice->region, 5u);
}

TEST(DirectPlacement, WhatDoesNotFitItsRegionGoesToTheSlots) {
  EXPECT_FALSE(place({.offset = 100, .block = 1}, 100 + 4096 + 8191));
  EXPECT_FALSE(place({.offset = UINT64_MAX / 2, .block = 1}, 1 << 20));
}

TEST(DirectPlacement, AGrantWithoutAKeySaysToUseTheSlots) {
  EXPECT_FALSE(place({.block = 1, .key = {}}, 1 << 20));
}

// The product of these does not fit into 64 bits with a sign.
TEST(DirectPlacement, AStrideMayBeAnyNumber) {
  EXPECT_FALSE(place({.stride_bytes = INT64_MAX, .block = UINT32_MAX}, 1 << 20));
  const auto wrapped = place({.stride_bytes = INT64_MIN, .block = UINT32_MAX}, 1 << 20);
  ASSERT_TRUE(wrapped);
  EXPECT_EQ(wrapped->offset, 4096u) << "somewhere, but in what the peer has opened for this";
}

}  // namespace
}  // namespace rdmacoll::direct_placement_test
