// Port: the credits that bound it, between two ends.
#include "csrc/engine/channel/port.h"

#include "tests/unit/engine/two_ends.h"

namespace rdmacoll::port_test {
namespace {

struct UntoldEnds : Ends {
  UntoldEnds() : Ends(kDataChannel, CreditLines::AreRefused) {}
};

TEST(Port, HasRoomForItsDepth) {
  UntoldEnds ends;
  EXPECT_EQ(ends.fill(0), ends.depth());
  ends.take_and_consume(1, ends.depth());
  EXPECT_FALSE(ends.of(0).can_send()) << "nothing has told it so far";
}

TEST(Port, OldCreditDoesNotCountAgain) {
  UntoldEnds ends;
  ends.fill(0);
  ends.take_and_consume(1, 1);
  ASSERT_TRUE(ends.of(1).announce(4));
  ends.take_and_consume(1, 2);
  ASSERT_TRUE(ends.of(1).announce(4));
  EXPECT_EQ(ends.fill(0), 3u);
  ends.take_and_consume(0, 2);  // the first says less than what is known
  EXPECT_FALSE(ends.of(0).can_send());
}

TEST(Port, CreditOfALineThatHasLainForLongDoesNotCount) {
  for (uint32_t consumed = 0; consumed <= 600; ++consumed) {
    Ends ends(kDataChannel, Ends::CreditLines::Arrive);
    ASSERT_TRUE(ends.of(1).announce(4));
    for (uint32_t i = 0; i < consumed; ++i) {
      ASSERT_TRUE(ends.of(0).can_send());
      ASSERT_TRUE(ends.of(0).announce(4));
      ends.take_and_consume(1, 1);
    }
    const uint32_t untold = consumed % (ends.depth() / 2);
    ASSERT_EQ(ends.fill(0), ends.depth() - untold) << consumed;
    ends.take_and_consume(0, 1);
    ASSERT_FALSE(ends.of(0).can_send()) << consumed;
  }
}

}  // namespace
}  // namespace rdmacoll::port_test
