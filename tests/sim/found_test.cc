// What the simulator has found, once each in a test of its own: a seed means another schedule as
// soon as anything draws one number more, and some bugs show in one of thousands.
#include "tests/unit/engine/two_ends.h"

namespace rdmacoll {
namespace {

// In one seed of 1,600: all of a group's ranks waited for room that messages nobody took had
// brought.
TEST(Found, AMessageTheOtherWayBringsCreditAlsoBeforeItIsTaken) {
  Ends ends(kDataChannel, Ends::CreditLines::AreRefused);
  ends.fill(0);
  ends.take_and_consume(1, 3);
  ASSERT_TRUE(ends.of(1).announce(4));
  EXPECT_EQ(ends.fill(0), 3u);
}

}  // namespace
}  // namespace rdmacoll
