// EagerInbox: messages are taken in any order, and no slot goes back before it has been read.
#include "csrc/engine/p2p/eager_inbox.h"

#include <cstring>

#include "tests/unit/engine/two_ends.h"

namespace rdmacoll::eager_inbox_test {
namespace {

constexpr uint64_t kBytes = 100;

struct EagerEnds : Ends {
  EagerEnds() : Ends(kEagerChannel, CreditLines::Arrive) {}
  void send(int value) {
    std::memset(of(0).outgoing(kBytes), value, kBytes);
    ASSERT_TRUE(of(0).announce(kBytes));
  }
  EagerInbox inbox{of(1)};
};

TEST(EagerInbox, GivesSlotsBackInTheOrderInWhichTheyWereFilled) {
  EagerEnds ends;
  for (int i = 0; i < static_cast<int>(kSlotDepth); ++i) {
    ASSERT_TRUE(ends.of(0).can_send());
    ends.send(i);
    ASSERT_EQ(ends.inbox.expect(), static_cast<uint64_t>(i));
  }
  ASSERT_FALSE(ends.of(0).can_send());
  for (uint64_t number = kSlotDepth; number-- > 0;) {
    ASSERT_FALSE(ends.of(0).can_send()) << "number 0 was not read yet";
    const std::byte* bytes = ends.inbox.look(number);
    ASSERT_NE(bytes, nullptr);
    ASSERT_EQ(bytes[0], static_cast<std::byte>(number));
    ASSERT_EQ(bytes[kBytes - 1], static_cast<std::byte>(number));
    ends.inbox.release(number);
  }
  EXPECT_TRUE(ends.of(0).can_send());
}

TEST(EagerInbox, WaitsForBytesThatAreSlowerThanTheirEnvelope) {
  EagerEnds ends;
  const uint64_t number = ends.inbox.expect();
  EXPECT_EQ(ends.inbox.look(number), nullptr);
  ends.send(7);
  const std::byte* bytes = ends.inbox.look(number);
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(bytes[0], std::byte{7});
  EXPECT_EQ(ends.inbox.look(number), bytes) << "until it is released";
}

}  // namespace
}  // namespace rdmacoll::eager_inbox_test
