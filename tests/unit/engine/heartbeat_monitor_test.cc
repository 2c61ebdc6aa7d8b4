// HeartbeatMonitor: whose count stands still for the bound is found, and nobody else.
#include "csrc/engine/failure/heartbeat_monitor.h"

#include <gtest/gtest.h>

#include "csrc/base/limits.h"
#include "tests/unit/engine/read_peers.h"

namespace rdmacoll::heartbeat_monitor_test {
namespace {

using Answer = ReadPeers::Answer;
constexpr int64_t kBoundNs = 20 * kHeartbeatNs;

struct HeartbeatMonitorTest : testing::Test {
  uint64_t& beats(uint32_t rank) {
    return *reinterpret_cast<uint64_t*>(peers.block(rank) + peers.layout.heartbeat());
  }
  // So many heartbeats, in which those run that are named, and what was found first.
  std::optional<uint32_t> pass(int heartbeats, const std::vector<uint32_t>& running) {
    for (int i = 0; i < heartbeats; ++i) {
      now_ns += kHeartbeatNs;
      for (const uint32_t rank : running) ++beats(rank);
      const auto found = monitor.look(now_ns, [](uint32_t peer) { return peer != 0; });
      if (found) return found;
    }
    return std::nullopt;
  }

  ReadPeers peers{3};
  HeartbeatMonitor monitor{*peers.links, kBoundNs};
  int64_t now_ns = 0;
};

TEST_F(HeartbeatMonitorTest, BeatsWhereOthersRead) {
  monitor.beat();
  monitor.beat();
  EXPECT_EQ(beats(0), 2u);
}

TEST_F(HeartbeatMonitorTest, WhoRunsIsNotFound) { EXPECT_EQ(pass(200, {1, 2}), std::nullopt); }

TEST_F(HeartbeatMonitorTest, WhoStandsStillIsFound) {
  ASSERT_EQ(pass(50, {1, 2}), std::nullopt);
  EXPECT_EQ(pass(15, {1}), std::nullopt) << "too soon";
  EXPECT_EQ(pass(20, {1}), 2u);
}

TEST_F(HeartbeatMonitorTest, ReadsThatComeLateCount) {
  peers.answers[2] = Answer::Later;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(pass(10, {1, 2}), std::nullopt);
    peers.deliver();
  }
}

TEST_F(HeartbeatMonitorTest, WhoseCountCannotBeReadIsFound) {
  ASSERT_EQ(pass(50, {1, 2}), std::nullopt);
  peers.answers[2] = Answer::Refuses;
  EXPECT_EQ(pass(15, {1, 2}), std::nullopt) << "too soon";
  EXPECT_EQ(pass(20, {1, 2}), 2u);
}

TEST_F(HeartbeatMonitorTest, NothingReadIsNoHeartbeat) {
  ASSERT_EQ(pass(50, {1, 2}), std::nullopt);
  peers.answers[2] = Answer::IsGone;
  EXPECT_EQ(pass(22, {1, 2}), 2u);
}

}  // namespace
}  // namespace rdmacoll::heartbeat_monitor_test
