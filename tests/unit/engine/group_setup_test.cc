// GroupSetup: a peer's block is used only if it has the size that all ranks agree on. Otherwise all
// that was open is closed.
#include "csrc/engine/connect/group_setup.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll {
namespace {

Status finish_with_a_block_of(uint64_t missing_bytes) {
  const Config config;
  const ManualClock clock;
  FakeTransport fake("shm", "address");
  Transports transports({&fake}, {"host", "host"}, config, clock);
  const Layout layout = Layout::within(2, config.block_bytes);
  fake.open_as.bytes = layout.total_bytes() - missing_bytes;
  GroupSetup setup = GroupSetup::begin(transports, clock, config, layout, 0, 2).take();
  auto theirs = GroupRecord::decode(setup.record());
  theirs.value().rank = 1;
  const Deadline deadline = Deadline::after_ms(clock, 1);
  const Status met = setup.meet({setup.record(), theirs.value().encode()}, deadline);
  EXPECT_TRUE(met.ok()) << met.message();
  const Status finished = setup.finish(deadline).status();
  if (finished.ok()) return finished;
  EXPECT_TRUE(fake.closed.empty());
  setup.give_up();
  EXPECT_EQ(fake.closed, std::vector<RegionId>{theirs.value().region}) << "it was open";
  EXPECT_TRUE(fake.regions.empty());
  return finished;
}

TEST(GroupSetup, ABlockMustHoldWhatIsWrittenThere) {
  EXPECT_TRUE(finish_with_a_block_of(0).ok());
  const Status status = finish_with_a_block_of(1);
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
  EXPECT_TRUE(status.message().starts_with("rank 1 names as its block")) << status.message();
}

}  // namespace
}  // namespace rdmacoll
