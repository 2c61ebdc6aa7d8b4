// AlarmFd: it rings at the first time of those who share it, and until that one takes it back.
#include "csrc/memory/alarm_fd.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace rdmacoll::alarm_fd_test {
namespace {

constexpr int64_t kSoonNs = 1'000'000;
constexpr int64_t kLateNs = 3'600'000'000'000;
constexpr int kLongMs = 20'000;

class Alarm : public ::testing::Test {
 protected:
  bool rings(int within_ms) const {
    pollfd waited{alarm_->get(), POLLIN, 0};
    return ::poll(&waited, 1, within_ms) == 1;
  }
  void set(const int& whose, int64_t ns) { alarm_->ring_in_ns(&whose, ns); }

  const std::shared_ptr<AlarmFd> alarm_ = AlarmFd::create().take();
  const int one_ = 1, other_ = 2;  // they are told apart by where they are
};

TEST_F(Alarm, RingsAtOnceOrInTimeUntilItIsTakenBack) {
  EXPECT_FALSE(rings(0));
  for (const int64_t ns : {int64_t{0}, kSoonNs}) {
    set(one_, ns);
    EXPECT_TRUE(rings(kLongMs));
    set(one_, ns);
    EXPECT_TRUE(rings(kLongMs));
    set(one_, AlarmFd::kNever);
    EXPECT_FALSE(rings(0));
  }
  set(one_, 0);
  set(one_, kLateNs);
  EXPECT_FALSE(rings(0));
}

TEST_F(Alarm, RingsAtTheFirstOfTheirTimes) {
  set(one_, kLateNs);
  set(other_, kSoonNs);
  EXPECT_TRUE(rings(kLongMs));
  set(other_, AlarmFd::kNever);
  EXPECT_FALSE(rings(0));
  set(other_, kLateNs);
  set(one_, kSoonNs);
  EXPECT_TRUE(rings(kLongMs));
}

TEST_F(Alarm, RingsForOneWhateverAnotherTakesBack) {
  set(one_, 0);
  set(other_, 0);
  EXPECT_TRUE(alarm_->rings_for_others(&one_) && alarm_->rings_for_others(&other_));
  set(one_, AlarmFd::kNever);
  EXPECT_TRUE(rings(kLongMs));
  EXPECT_TRUE(alarm_->rings_for_others(&one_));
  EXPECT_FALSE(alarm_->rings_for_others(&other_));
  set(one_, kLateNs);
  EXPECT_TRUE(rings(kLongMs));
  EXPECT_FALSE(alarm_->rings_for_others(&other_));
  set(other_, AlarmFd::kNever);
  EXPECT_FALSE(rings(0));
}

}  // namespace
}  // namespace rdmacoll::alarm_fd_test
