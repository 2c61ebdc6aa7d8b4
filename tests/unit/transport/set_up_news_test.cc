// SetUpNews: transports that share an alarm hear of nothing less than those that have their own.
#include "csrc/transport/set_up_news.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace rdmacoll::set_up_news_test {
namespace {

bool rings(const SetUpNews& news, int within_ms) {
  pollfd waited{news.get(), POLLIN, 0};
  return ::poll(&waited, 1, within_ms) == 1;
}

class SharedNews : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto alarm = AlarmFd::create().take();
    one_.ring_by(alarm);
    other_.ring_by(alarm);
  }

  SetUpNews one_, other_;
  bool take(SetUpNews& news) {
    SetUpReport report;
    news.take(report);
    return report.callers == std::vector<std::string>{"address"};
  }
};

TEST_F(SharedNews, OfOneRingUntilThatOneIsAsked) {
  one_.note_caller({1}, "address");
  EXPECT_TRUE(rings(other_, 20'000));
  EXPECT_FALSE(take(other_));
  EXPECT_TRUE(rings(one_, 20'000));
  EXPECT_TRUE(take(one_));
  EXPECT_FALSE(rings(one_, 0));
}

// A look at one transport puts off no look at another.
TEST_F(SharedNews, ALookAtOneLeavesTheTimeOfTheOther) {
  one_.look_again_in_ns(1'000'000);
  other_.look_again_in_ns(3'600'000'000'000);
  other_.begin_look();
  EXPECT_TRUE(rings(other_, 20'000));
  one_.begin_look();
  EXPECT_FALSE(rings(one_, 0));
}

// Who waits in one transport alone, where another's news wake, does not look for them in vain.
TEST_F(SharedNews, OfAnotherAreToldFromOnesOwn) {
  one_.look_again_in_ns(0);
  EXPECT_TRUE(other_.rings_for_others());
  EXPECT_FALSE(one_.rings_for_others()) << "it is to look again itself, at once";
  one_.note_caller({1}, "address");
  EXPECT_TRUE(one_.rings_for_others()) << "whoever calls serve() is to hear of it";
}

}  // namespace
}  // namespace rdmacoll::set_up_news_test
