// tcp: memory that is lent to a process that does not keep to it: what goes beyond it breaks the
// protocol, what comes too late is dropped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/contract/tcp_scene.h"

namespace rdmacoll::tcp_lending_test {
namespace {

using tcp::FrameHead;
using tcp::FrameKind;

// Memory of the victim that is no region; a part of it is lent to the rogue.
struct LendingScene : Scene {
  static constexpr uint64_t kLent = 64;
  LendingScene() : Scene(2), memory(4 * kLent, std::byte{0x55}) {
    lent = victim().begin_placement(rogue->peer(), memory.data() + kLent, kLent);
    EXPECT_TRUE(lent.is_given());
    const auto key =
        tcp::parse_placement_key(std::string_view(lent.key.data(), lent.key.size())).value();
    put = {.kind = FrameKind::Put, .region = lent.id, .number = key.use};
  }
  bool is_still() const {
    return std::all_of(memory.begin(), memory.end(),
                       [](std::byte one) { return one == std::byte{0x55}; });
  }
  // It is heard behind what it has said over both streams.
  void expect_rogue_goes_on(uint32_t puts_over_second = 0) {
    tcp::MarkBody mark{};
    mark.puts[0] = puts_over_second;
    rogue->say({.kind = FrameKind::Mark}, bytes_of(mark));
    rogue->say(head(FrameKind::Signal), signal_body());
    std::memset(pair.region[0].base, 0, kLineBytes);
    EXPECT_TRUE(pair.until([&] { return pair.counter(0) == 7; }));
    EXPECT_TRUE(rogue->status().ok()) << rogue->status().message();
  }
  std::vector<std::byte> memory;
  Placement lent;
  FrameHead put;
};

TEST(TcpLending, WhatIsLentIsPutToAndNotBeyond) {
  LendingScene scene;
  scene.put.offset = 60;
  scene.rogue->say(scene.put, "last");
  scene.expect_rogue_goes_on();
  EXPECT_EQ(std::memcmp(scene.memory.data() + 64 + 60, "last", 4), 0);
  for (const uint64_t offset : {uint64_t{61}, uint64_t{64}, UINT64_MAX}) {
    LendingScene other;
    other.put.offset = offset;
    other.rogue->say(other.put, "last");
    other.expect_rogue_alone_is_lost(kBroke);
    EXPECT_TRUE(other.is_still());
  }
  LendingScene none;
  none.put.region = tcp::kFirstPlacement + tcp::kPlacements;
  none.rogue->say(none.put, "last");
  none.expect_rogue_alone_is_lost(kBroke);
}

TEST(TcpLending, WhatWasLentIsDroppedAlsoInItsMiddleAndWhatFollowsIsHeard) {
  LendingScene scene;
  // Half of a put has come over the second stream when the loan ends.
  const std::string payload(64, 'x');
  scene.rogue->say_part(scene.put, payload, 32, 1);
  EXPECT_TRUE(scene.pair.until([&] { return scene.memory[64 + 31] == std::byte{'x'}; }));
  scene.victim().end_placement(scene.lent);
  std::fill(scene.memory.begin(), scene.memory.end(), std::byte{0x55});
  scene.rogue->say_bytes(payload.substr(32), 1);
  scene.rogue->say(scene.put, "late");
  // The slot is lent anew, to another: what the rogue says is none of its own.
  const Placement again =
      scene.victim().begin_placement(scene.pair.peer[0], scene.memory.data(), 64);
  EXPECT_EQ(again.id, scene.lent.id);
  scene.rogue->say(scene.put, "late");
  ++scene.put.number;
  scene.rogue->say(scene.put, "not mine");
  scene.expect_rogue_goes_on(1);
  EXPECT_TRUE(scene.is_still());
  scene.victim().end_placement(again);
}

}  // namespace
}  // namespace rdmacoll::tcp_lending_test
